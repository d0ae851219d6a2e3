import { type BillingCycle, billingCycle } from "@slipway/crds";
import { organizationCost, projectCost } from "@slipway/ledger";
import { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import { failures } from "../errors/catalog.ts";
import { defineProjectRoute, defineRoute } from "../http/route.ts";
import { wholeNumber } from "../http/validate.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { success } from "../projects/routes/schemas.ts";
import { projectCostSchema, projectCostView, usageSchema, usageView } from "./view.ts";

const TAGS = ["Usage"];
/** Of each route. One has a connection of the ledger's eight for up to three seconds: half of them stay for all else. */
const MAX_CONCURRENT = 2;

const cycleParameter = z
  .string()
  .regex(/^20[2-9][0-9]-(0[1-9]|1[0-2])$/, "must be a month, YYYY-MM")
  .describe("A billing cycle, YYYY-MM; the current one unless given.")
  .optional();

/** @throws Failure 400 for a cycle that has not begun */
function requestedCycle(
  cycle: string | undefined,
  now: Date,
): { cycle: BillingCycle; now: Date | undefined } {
  const current = billingCycle(now);
  const wanted = cycle === undefined ? current : billingCycle(new Date(`${cycle}-01T00:00:00Z`));
  if (wanted.startedAt > current.startedAt) {
    throw failures.validation([
      { field: "cycle", message: "has not begun", code: "BILLING_CYCLE_NOT_BEGUN" },
    ]);
  }
  return { cycle: wanted, now: wanted.startedAt < current.startedAt ? undefined : now };
}

/** What the organization's projects are called. */
function namesOf(projects: readonly ApiProject[]): (projectId: string) => string | undefined {
  const names = new Map(projects.map(({ id, resource }) => [id, resource.spec.name]));
  return (projectId) => names.get(projectId);
}

export const readUsage = defineRoute({
  operationId: "readUsage",
  method: "GET",
  path: "/v1/organization/usage",
  summary: "Read what an organization was charged in a billing cycle",
  description:
    "By kind, by day and by project, exactly as the ledger has it; with a forecast of the current cycle. Deleted projects are included. The kinds of plans (`instance_hour`, `storage_hour`, `term`, `credit`) and `build_minute` are in no settlement yet.",
  tags: TAGS,
  query: z.strictObject({
    cycle: cycleParameter,
    page: wholeNumber(1, 2 ** 31 - 1).default(1),
    limit: wholeNumber(1, 100).default(50),
  }),
  responses: {
    200: { description: "What was charged.", schema: success({ data: usageSchema }) },
  },
  refusals: [503],
  maxConcurrent: MAX_CONCURRENT,
  handler: async ({ principal, query }, { ledger, projects, metersPlans, now }) => {
    const { organizationId } = principal as Principal;
    const { page, limit } = query;
    const requested = requestedCycle(query.cycle, now());
    const cost = await withLedgerErrors(() =>
      organizationCost(ledger, {
        organizationId,
        cycle: requested.cycle.startedAt,
        now: requested.now,
        offset: (page - 1) * limit,
        limit,
      }),
    );
    const nameOf = namesOf(projects.list(organizationId));
    const data = usageView(cost, { ...requested, plansMetered: metersPlans, page, limit, nameOf });
    return { status: 200, body: { status: "success", data } };
  },
});

export const readProjectCost = defineProjectRoute({
  operationId: "readProjectCost",
  method: "GET",
  path: "/v1/project/:id/cost",
  summary: "Read what a project was charged in a billing cycle",
  description:
    "By kind and by day, exactly as the ledger has it; with a forecast of the current cycle. The kinds of plans (`instance_hour`, `storage_hour`, `term`, `credit`) and `build_minute` are in no settlement yet.",
  tags: TAGS,
  query: z.strictObject({ cycle: cycleParameter }),
  responses: {
    200: { description: "What was charged.", schema: success({ data: projectCostSchema }) },
  },
  refusals: [503],
  maxConcurrent: MAX_CONCURRENT,
  handler: async ({ project, query }, { ledger, metersPlans, now }) => {
    const { organizationId, id, resource } = project;
    const requested = requestedCycle(query.cycle, now());
    const cost = await withLedgerErrors(() =>
      projectCost(ledger, {
        organizationId,
        projectId: id,
        cycle: requested.cycle.startedAt,
        now: requested.now,
      }),
    );
    const data = projectCostView(cost, {
      ...requested,
      plansMetered: metersPlans,
      id,
      name: resource.spec.name,
    });
    return { status: 200, body: { status: "success", data } };
  },
});
