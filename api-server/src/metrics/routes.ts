import {
  databasePodName,
  instanceTypes,
  isInstanceType,
  mariadbMetrics,
  postgresqlMetrics,
  snapshotResource,
  valkeyMetrics,
} from "@slipway/crds";
import { z } from "zod";
import { applicationMetrics, requireMetrics, WINDOW_SECONDS } from "../analytics/instances.ts";
import { shares } from "../analytics/routes/view.ts";
import { planInForce } from "../databases/plan.ts";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { whileConnected } from "../http/exchange.ts";
import { defineProjectRoute } from "../http/route.ts";
import { type ApiProject, requireType } from "../projects/api-project.ts";
import { success } from "../projects/routes/schemas.ts";
import type { Services } from "../services.ts";
import { capabilitiesOf } from "./capabilities.ts";
import { type History, historyQuery, historySchema, historyWindow, readHistory } from "./history.ts";
import { sampledTypes, snapshotView } from "./snapshots.ts";

/** The operations on the metrics of a project. */

const history = historySchema.describe("With `range_seconds` alone.").optional();

const capabilities = z.object({
  access: z.enum(["snapshot", "none"]).describe("none: a snapshot must not be asked for."),
  groups: z.array(z.string()),
  refresh_seconds: z.int(),
  history: z
    .null()
    .describe("Of snapshots only the newest is kept. What instances used is `history` of `GET metrics`."),
});

export const metricsCapabilities = defineProjectRoute({
  operationId: "readMetricsCapabilities",
  method: "GET",
  path: "/v1/project/:id/metrics/capabilities",
  summary: "Read which snapshots of metrics a project's plan gives",
  description:
    "Jobs and clickhouse have none. Applications have no snapshot, but `GET metrics` on plans with metrics.",
  tags: ["Metrics"],
  responses: { 200: { description: "What there is.", schema: success({ data: capabilities }) } },
  handler: ({ project }, { catalog }) => {
    const data = capabilitiesOf(project.resource, catalog.current);
    return { status: 200, body: { status: "success", data } };
  },
});

const availability = z
  .enum(["available", "partial", "stale", "unavailable"])
  .describe("stale: an earlier sample with its own timestamps; unavailable: there is none.");
const moment = z.string().nullable();

const common = {
  schema_version: z.int(),
  project_id: z.string(),
  instance: z.string(),
  observed_at: moment.describe("When the values were observed on the instance."),
  collected_at: moment.describe("When the snapshot became available."),
  availability,
  resource: snapshotResource,
  history,
};

const valkeySnapshot = z.object({
  instance: z.string(),
  type: z.literal("valkey"),
  cpu: z.number().describe("Cores; legacy, 0 where nothing is known."),
  memory: z.number().describe("Bytes; legacy, 0 where nothing is known."),
  observed_at: moment,
  availability,
  valkey: valkeyMetrics
    .extend({
      schema_version: z.int(),
      profile: z.enum(["key_value", "cache", "queue"]),
      availability,
    })
    .nullable(),
  history,
});

const application = z.object({
  type: z.literal("application"),
  aggregate: z.literal(true),
  network: z.object({
    requests: z.int().min(0),
    bytes_received: z.int().min(0),
    bytes_sent: z.int().min(0),
    status_codes: z.record(z.string(), z.int().min(0)).describe("Requests by status."),
    user_agents: shares("user agent"),
    window_seconds: z.int().describe("The window ends now."),
  }),
  history,
});

const applicationInstance = z.object({
  type: z.literal("application"),
  aggregate: z.literal(false),
  instance: z.string(),
  uptime: z
    .int()
    .min(0)
    .nullable()
    .describe("Whole seconds since its container started; null while none runs."),
  cpu: z.number().min(0).nullable().describe("Cores."),
  memory: z.number().min(0).nullable().describe("Bytes."),
  observed_at: moment.describe("When cpu and memory were measured."),
  history,
});

const snapshots = z.union([
  application,
  applicationInstance,
  z.object({ ...common, type: z.literal("postgresql"), native: postgresqlMetrics }),
  z.object({ ...common, type: z.literal("mariadb"), native: mariadbMetrics }),
  valkeySnapshot,
]);

export const projectMetrics = defineProjectRoute({
  operationId: "readProjectMetrics",
  method: "GET",
  path: "/v1/project/:id/metrics",
  summary: "Read metrics of an application, or the newest snapshot of a database's",
  description:
    "Of HTTP projects on plans with metrics: what they answered in the last hour, or what the named instance uses now; of workers " +
    "on such plans what the instance uses, which must be named. " +
    "Of postgresql, mariadb and Valkey, on plans whose capabilities say `snapshot`. Fields that end in `_total` count since the " +
    "last restart or reset, those in `_per_second` lie between two samples, those in `_ratio` between 0 and 1 but for memory " +
    "fragmentation. What is absent or not computable is null. With `range_seconds` the answer also has `history`: what the instances, or " +
    "the named one, used in that time, also those that are gone. With it a worker's instance need not be named: it has no requests.",
  tags: ["Metrics"],
  query: historyQuery,
  refusals: [400, 402, 503],
  responses: { 200: { description: "The metrics.", schema: success({ data: snapshots }) } },
  handler: async ({ project, query, request }, services) => {
    const { analytics, catalog, snapshots: store, now } = services;
    const { resource, organizationId, id: projectId } = project;
    const window = historyWindow(query, now());
    const read = async () =>
      window &&
      (await whileConnected(request, (signal) =>
        readHistory(analytics, project, { ...window, instance: query.instance }, signal),
      ));
    if (isInstanceType(resource.spec.type)) {
      requireMetrics(resource, catalog.current);
      const data = await applicationData(project, query.instance, await read(), services);
      return { status: 200, body: { status: "success", data } };
    }
    requireType(project, [...instanceTypes, ...sampledTypes]);
    const { access } = capabilitiesOf(resource, catalog.current);
    if (access === "none") {
      throw failures.metricsNotAvailable(planInForce(resource));
    }
    const past = await read();
    const instance = databaseInstance(project, query.instance, past);
    const { uid: projectUid = "" } = resource.metadata;
    const sample = instance.isGone
      ? undefined
      : await store.newest({ organizationId, projectId, projectUid, instance: instance.name });
    const data = snapshotView(resource, instance.name, sample, now());
    return { status: 200, body: { status: "success", data: past ? { ...data, history: past } : data } };
  },
});

/** Whether an instance is none of the project's any more, and was one in the time of the history. */
const isGoneSince = (error: unknown, past: History | undefined): past is History =>
  error instanceof Failure && error.code === "INSTANCE_NOT_FOUND" && (past?.instances.length ?? 0) > 0;

/** As `snapshotInstance`; one that is gone has no snapshot, and its history. */
function databaseInstance(
  project: ApiProject,
  requested: string | undefined,
  past: History | undefined,
): { name: string; isGone: boolean } {
  try {
    return { name: snapshotInstance(project, requested), isGone: false };
  } catch (error) {
    if (requested === undefined || !isGoneSince(error, past)) {
      throw error;
    }
    return { name: requested, isGone: true };
  }
}

/** What an application uses and answers now, and its history where that is requested. */
async function applicationData(
  project: ApiProject,
  instance: string | undefined,
  past: History | undefined,
  services: Services,
): Promise<Record<string, unknown>> {
  if (past && instance === undefined && project.resource.spec.type === "worker") {
    // A worker has no address.
    const nothing = { requests: 0, bytes_received: 0, bytes_sent: 0, status_codes: {}, user_agents: {} };
    const network = { ...nothing, window_seconds: WINDOW_SECONDS };
    return { type: "application", aggregate: true, network, history: past };
  }
  try {
    const data = await applicationMetrics(project, instance, services);
    return past ? { ...data, history: past } : data;
  } catch (error) {
    if (!isGoneSince(error, past)) {
      throw error;
    }
    const nothing = { uptime: null, cpu: null, memory: null, observed_at: null };
    return { type: "application", aggregate: false, instance, ...nothing, history: past };
  }
}

/**
 * The instance of a snapshot: the one that takes writes, unless another is named.
 * @throws Failure 404 for one that the project has not
 */
export function snapshotInstance(project: ApiProject, requested: string | undefined): string {
  const { id, instances, resource } = project;
  const { database, currentInstances = 0 } = resource.status ?? {};
  if (requested === undefined) {
    return database?.primary ?? databasePodName(id, 0);
  }
  // More than the spec has while some are being stopped.
  const most = Math.max(instances, currentInstances);
  const known = Array.from({ length: most }, (_, ordinal) => databasePodName(id, ordinal));
  if (!known.includes(requested)) {
    throw failures.instanceNotFound(requested);
  }
  return requested;
}
