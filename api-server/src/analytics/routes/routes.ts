import {
  named,
  type Page,
  type Paging,
  requestEvents,
  type Selection,
  type Store,
  statusCodes,
  summary,
} from "@slipway/analytics";
import type { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineProjectRoute, type ProjectCall } from "../../http/route.ts";
import type { OperationId } from "../../policy/table.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import type { Services } from "../../services.ts";
import { hasMetrics } from "../instances.ts";
import { filterOf, type NetworkQuery, networkQuery, requestedWindow } from "./query.ts";
import {
  eventView,
  namedView,
  pageOf,
  requestEventItem,
  routeItem,
  sourceIpItem,
  statusCodeItem,
  statusView,
  summarySchema,
  summaryView,
  userAgentItem,
} from "./view.ts";

/** The operations on the network analytics of a project. */

const common = {
  method: "GET",
  tags: ["Network analytics"],
  query: networkQuery,
  refusals: [402, 503],
} as const;

const PARAMETERS =
  "Of HTTP projects on plans with metrics. Every filter leaves out requests; together they leave out more. An answer may be two " +
  "seconds old.";

/**
 * The project and the query of a call.
 * @throws Failure 400 for a project of another type than http, or a window that cannot be queried; 402 for a plan without metrics
 */
function parseQuery(
  { project, query }: ProjectCall<unknown, NetworkQuery, unknown>,
  { catalog, now }: Pick<Services, "catalog" | "now">,
) {
  requireType(project, ["http"]);
  const window = requestedWindow(query, now());
  if (!hasMetrics(project.resource, catalog.current)) {
    throw failures.networkAnalyticsNotAvailable(project.resource.spec.plan);
  }
  return { project, window, filter: filterOf(query) };
}

export const networkSummary = defineProjectRoute({
  ...common,
  operationId: "readNetworkSummary",
  path: "/v1/project/:id/metrics/network/summary",
  summary: "Read how many requests a project answered, and how fast",
  description: `${PARAMETERS} It has no pages.`,
  responses: {
    200: { description: "The window, and what was in it.", schema: success({ data: summarySchema }) },
  },
  handler: async (call, services) => {
    const { project, ...question } = parseQuery(call, services);
    const { window, value } = await services.analytics.answer(
      project,
      { about: ["summary"], ...question },
      summary,
    );
    return { status: 200, body: { status: "success", data: summaryView(project.id, window, value) } };
  },
});

interface List<Item> {
  operationId: OperationId;
  name: string;
  summary: string;
  description: string;
  item: z.ZodType;
  read: (store: Store, selection: Selection, paging: Paging) => Promise<Page<Item>>;
  view: (item: Item) => Record<string, unknown>;
}

function list<Item>({ operationId, name, summary, description, item, read, view }: List<Item>) {
  return defineProjectRoute({
    ...common,
    operationId,
    path: `/v1/project/:id/metrics/network/${name}`,
    summary,
    description: `${description} ${PARAMETERS} A page behind the last one is empty.`,
    responses: { 200: { description: "One page.", schema: success({ data: pageOf(item) }) } },
    handler: async (call, services) => {
      const { project, ...question } = parseQuery(call, services);
      const { page, limit } = call.query;
      const about = [name, page, limit];
      const { value } = await services.analytics.answer(project, { about, ...question }, (store, selection) =>
        read(store, selection, { page, limit }),
      );
      const { items, total } = value;
      const pagination = { page, limit, total, total_pages: Math.ceil(total / limit) };
      return { status: 200, body: { status: "success", data: { data: items.map(view), pagination } } };
    },
  });
}

export const networkStatusCodes = list({
  operationId: "listNetworkStatusCodes",
  name: "status-codes",
  summary: "List the statuses that a project answered with",
  description: "Those with the most requests first.",
  item: statusCodeItem,
  read: statusCodes,
  view: statusView,
});

const byName = (key: "route" | "user_agent" | "source_ip") => ({
  description: "Those with the most requests first.",
  read: (store: Store, selection: Selection, paging: Paging) => named(store, selection, key, paging),
  view: namedView(key),
});

export const networkRoutes = list({
  operationId: "listNetworkRoutes",
  name: "routes",
  summary: "List the routes that a project was asked for",
  item: routeItem,
  ...byName("route"),
});

export const networkUserAgents = list({
  operationId: "listNetworkUserAgents",
  name: "user-agents",
  summary: "List the user agents that asked a project",
  item: userAgentItem,
  ...byName("user_agent"),
});

export const networkSourceIps = list({
  operationId: "listNetworkSourceIps",
  name: "source-ips",
  summary: "List the addresses that asked a project",
  item: sourceIpItem,
  ...byName("source_ip"),
});

export const networkRequestEvents = list({
  operationId: "listNetworkRequestEvents",
  name: "request-events",
  summary: "List the requests of a project one by one",
  description: "The newest first.",
  item: requestEventItem,
  read: requestEvents,
  view: eventView,
});
