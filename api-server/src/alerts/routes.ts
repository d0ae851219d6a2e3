import {
  type AlertRule,
  isInstanceType,
  isMeasured,
  type Project,
  type ProjectSpec,
  putAlertsBody,
  toCamel,
} from "@slipway/crds";
import { alertStatesOf } from "@slipway/ledger";
import { z } from "zod";
import { requireMetrics } from "../analytics/instances.ts";
import { planInForce } from "../databases/plan.ts";
import { failures } from "../errors/catalog.ts";
import { defineProjectRoute } from "../http/route.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import { hasDatabaseMetrics } from "../metrics/capabilities.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { changeProject } from "../projects/change.ts";
import { success } from "../projects/routes/schemas.ts";
import type { Services } from "../services.ts";
import { alertSchema, alertViews } from "./view.ts";

/** The operations on a project's alerts. */

const path = "/v1/project/:id/alerts";
const data = z.object({ alerts: z.array(alertSchema) });

const statesOf = ({ identity }: ApiProject, { ledger }: Pick<Services, "ledger">) =>
  withLedgerErrors(() => alertStatesOf(ledger, identity.projectUid));

export const readAlerts = defineProjectRoute({
  operationId: "readProjectAlerts",
  method: "GET",
  path,
  summary: "Read a project's alerts, and which of them fire",
  tags: ["Alerts"],
  responses: { 200: { description: "The rules, with their states.", schema: success({ data }) } },
  refusals: [503],
  handler: async ({ project }, services) => {
    const alerts = alertViews(project.resource.spec.alerts, await statesOf(project, services));
    return { status: 200, body: { status: "success", data: { alerts } } };
  },
});

/** The spec with other rules; a rule without a name has that of its metric. Pure. */
export function withAlerts(spec: ProjectSpec, { alerts }: z.output<typeof putAlertsBody>): ProjectSpec {
  const { alerts: _, ...rest } = spec;
  const rules = (toCamel(alerts) as (Omit<AlertRule, "name"> & { name?: string })[]).map((rule) => ({
    ...rule,
    name: rule.name ?? rule.metric,
  }));
  return rules.length === 0 ? rest : { ...rest, alerts: rules };
}

/** @throws Failure 402 or 403 for rules about what the project's plan does not measure */
export function requireMeasured(resource: Project, { catalog }: Pick<Services, "catalog">): void {
  const { type, alerts = [] } = resource.spec;
  if (!alerts.some(({ metric }) => isMeasured(metric))) {
    return;
  }
  if (isInstanceType(type)) {
    requireMetrics(resource, catalog.current);
  } else if (!hasDatabaseMetrics(resource, catalog.current)) {
    throw failures.metricsNotAvailable(planInForce(resource));
  }
}

export const updateAlerts = defineProjectRoute({
  operationId: "updateProjectAlerts",
  method: "PUT",
  path,
  summary: "Change a project's alerts",
  description:
    "All rules of the project: one that is absent is removed, and an alert of it that fires has ended. A rule that keeps its name and metric keeps its " +
    "state. CPU, memory, volume and the share of failed requests are of plans with metrics. No deployment begins.",
  tags: ["Alerts"],
  body: putAlertsBody,
  responses: {
    200: { description: "Changed.", schema: success({ message: z.string(), data }) },
  },
  refusals: [402, 409, 503],
  handler: async ({ project, body }, services) => {
    const states = await statesOf(project, services);
    const { project: changed } = await changeProject(project, services, (spec) => withAlerts(spec, body), {
      prepare: async (wanted) => requireMeasured(wanted, services),
    });
    const alerts = alertViews(changed.resource.spec.alerts, states);
    return { status: 200, body: { status: "success", message: "alerts updated", data: { alerts } } };
  },
});
