import { createLogDrainBody, organizationNamespace, type Project, patchLogDrainBody } from "@slipway/crds";
import { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import { failures } from "../errors/catalog.ts";
import { type Call, defineRoute } from "../http/route.ts";
import { newLogDrainId } from "../ids.ts";
import { withClusterErrors } from "../organizations/cluster-errors.ts";
import { isProvisioned, readNamespace } from "../organizations/service.ts";
import { messageOnly, success } from "../projects/routes/schemas.ts";
import { projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import { changeDrain } from "./change.ts";
import { createDrain, deleteDrain, findDrain, listDrains } from "./cluster.ts";
import { createCredentials, dataOf, newCredentialsName } from "./credentials.ts";
import { drainSchema, drainView } from "./view.ts";

const TAGS = ["Log drains"];
/** Each waits for the cluster. */
const MAX_CONCURRENT = 16;

const organizationOf = ({ principal }: Pick<Call<unknown, unknown, unknown>, "principal">): string =>
  (principal as Principal).organizationId;

function drainOf(
  call: Pick<Call<unknown, unknown, unknown>, "principal" | "request">,
  { kube }: Pick<Services, "kube">,
) {
  const { drainId } = call.request.params as { drainId: string };
  return findDrain(kube, organizationOf(call), drainId);
}

export const listLogDrains = defineRoute({
  operationId: "listLogDrains",
  method: "GET",
  path: "/v1/organization/log-drains",
  summary: "List log drains",
  description: "All of the organization, the oldest first.",
  tags: TAGS,
  responses: {
    200: {
      description: "All of them.",
      schema: success({ data: z.object({ log_drains: z.array(drainSchema) }) }),
    },
  },
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { kube }) => {
    const found = await listDrains(kube, organizationOf(call));
    return { status: 200, body: { status: "success", data: { log_drains: found.map(drainView) } } };
  },
});

export const readLogDrain = defineRoute({
  operationId: "readLogDrain",
  method: "GET",
  path: "/v1/organization/log-drains/:drainId",
  summary: "Read a log drain, and what becomes of its lines",
  tags: TAGS,
  responses: { 200: { description: "The drain.", schema: success({ data: drainSchema }) } },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const data = drainView(await drainOf(call, services));
    return { status: 200, body: { status: "success", data } };
  },
});

export const createLogDrain = defineRoute({
  operationId: "createLogDrain",
  method: "POST",
  path: "/v1/organization/log-drains",
  summary: "Create a log drain",
  description:
    "Lines that are stored from now on are sent to the receiver, at least once. Credentials are never shown again.",
  tags: TAGS,
  body: createLogDrainBody,
  responses: {
    201: { description: "Created.", schema: success({ message: z.string(), data: drainSchema }) },
  },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { kube, analytics }) => {
    analytics.requireLogs();
    const { name: displayName, project_id: project, otlp_http: otlpHttp, syslog, ca } = call.body;
    const { headers = [], client_certificate: certificate } = call.body;
    const organizationId = organizationOf(call);
    requireLogs(call.principal as Principal, project);
    if (!isProvisioned(await readNamespace(kube, organizationId))) {
      throw failures.organizationRuntimeUnavailable();
    }
    if (project !== undefined) {
      await checkProject({ kube }, organizationId, project);
    }
    const id = newLogDrainId();
    const hasCredentials = headers.length > 0 || certificate !== undefined;
    const secretName = newCredentialsName(id);
    const drain = await createDrain(kube, organizationId, id, {
      displayName,
      ...(project === undefined ? {} : { projectRef: { name: project } }),
      ...(otlpHttp === undefined ? {} : { otlpHttp }),
      ...(syslog === undefined ? {} : { syslog }),
      ...(ca === undefined ? {} : { ca }),
      ...(hasCredentials ? { secretRef: { name: secretName } } : {}),
    });
    if (hasCredentials) {
      // Without its Secret it would send nothing.
      await createCredentials(kube, drain, secretName, dataOf(call.body)).catch(async (error: unknown) => {
        await deleteDrain(kube, drain).catch(() => {});
        throw error;
      });
    }
    const body = { status: "success", message: "log drain created", data: drainView(drain) };
    return { status: 201, body };
  },
});

export const updateLogDrain = defineRoute({
  operationId: "updateLogDrain",
  method: "PATCH",
  path: "/v1/organization/log-drains/:drainId",
  summary: "Change a log drain",
  description: "It continues behind the line that was sent last. What is absent stays.",
  tags: TAGS,
  body: patchLogDrainBody,
  responses: { 200: { description: "Changed.", schema: messageOnly } },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const find = async () => {
      const drain = await drainOf(call, services);
      requireLogs(call.principal as Principal, drain.spec.projectRef?.name);
      return drain;
    };
    await changeDrain(services.kube, find, call.body);
    return { status: 200, body: { status: "success", message: "log drain updated" } };
  },
});

export const deleteLogDrain = defineRoute({
  operationId: "deleteLogDrain",
  method: "DELETE",
  path: "/v1/organization/log-drains/:drainId",
  summary: "Delete a log drain",
  description: "What was not sent yet is not sent any more.",
  tags: TAGS,
  responses: { 200: { description: "Deleted.", schema: messageOnly } },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    await deleteDrain(services.kube, await drainOf(call, services));
    return { status: 200, body: { status: "success", message: "log drain deleted" } };
  },
});

/** Lines of these projects are sent, so that the caller must be allowed to read them. @throws Failure 403, 404 */
function requireLogs({ grants }: Principal, project: string | undefined): void {
  if (project !== undefined && !grants.onProject("project.logs.read", project)) {
    throw failures.projectNotFound();
  }
  if (project === undefined && !grants.onEveryProject("project.logs.read")) {
    throw failures.projectPermission("project.logs.read", "*");
  }
}

/** @throws Failure 404 when the organization has no such project, 400 for one whose lines are not stored; 503 */
async function checkProject(
  { kube }: Pick<Services, "kube">,
  organizationId: string,
  id: string,
): Promise<void> {
  const ref = { namespace: organizationNamespace(organizationId), name: id };
  const found = await withClusterErrors(kube.getOrUndefined<Project>(projectResource, ref));
  if (found === undefined) {
    throw failures.projectNotFound();
  }
  if (found.spec.type === "job") {
    const message = "logs of jobs are with their runs";
    throw failures.validation([{ field: "project_id", code: "LOG_DRAIN_PROJECT", message }]);
  }
}
