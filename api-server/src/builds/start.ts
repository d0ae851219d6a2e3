import {
  isAlreadyExists,
  isForbidden,
  isNamespaceTerminating,
  isNotFound,
  KubeError,
} from "@slipway/controller-runtime";
import {
  type Build,
  type BuildRequest,
  buildObject,
  fieldManagers,
  organizationOfNamespace,
  type Project,
} from "@slipway/crds";
import type { BuildRow } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { buildResource } from "../resources.ts";
import type { Services } from "../services.ts";
import { isFinished } from "./view.ts";

/** Starts builds: creates the Build of a resolved commit, and its row in the ledger. */

/** What a build is requested with; its commit is resolved. */
export interface KnownRequest extends BuildRequest {
  commitSha: string;
  /** First line of the commit's message. */
  commitMessage?: string;
}

/** The ledger's row of a build that was requested just now. Pure. */
function pendingRow({ metadata, spec }: Build, project: Project, commitMessage?: string): BuildRow {
  const { namespace = "", name, uid = "" } = project.metadata;
  return {
    organization_id: organizationOfNamespace(namespace) ?? "",
    project_id: name,
    project_uid: uid,
    id: metadata.name,
    triggered_by: spec.triggeredBy,
    branch: spec.branch ?? null,
    tag: spec.tag ?? null,
    commit_sha: spec.commitSha ?? null,
    commit_message: commitMessage?.slice(0, 256) ?? null,
    status: "pending",
    digest: null,
    error_code: null,
    error_message: null,
    created_at: new Date(spec.requestedAt ?? metadata.creationTimestamp ?? 0),
    started_at: null,
    finished_at: null,
  };
}

export type StartServices = Pick<Services, "kube" | "now" | "builds" | "logger">;

/**
 * Requests a build of this id, or finds that it was requested before. The object comes first: from then on the operator carries
 * it out and records it in the ledger, whatever the outcome of this call.
 *
 * @param project as the cluster has it
 * @param isRepeat whether an earlier call may have requested the build: one that has ended is not created again, although its
 *   object is deleted
 * @returns the id
 * @throws Failure 409 when the project is being deleted, 503; KubeError is left to creations, which undo what they wrote
 */
export async function startBuild(
  project: Project,
  id: string,
  request: KnownRequest,
  services: StartServices,
  { isRepeat = false }: { isRepeat?: boolean } = {},
): Promise<string> {
  const { namespace = "", name, uid = "", deletionTimestamp } = project.metadata;
  if (deletionTimestamp !== undefined) {
    throw failures.projectAlreadyDeleted();
  }
  if (isRepeat) {
    const organizationId = organizationOfNamespace(namespace) ?? "";
    const key = { organizationId, projectId: name, projectUid: uid, id };
    const before = await services.builds.store.find(key);
    if (before !== undefined && isFinished(before.status)) {
      return id;
    }
  }
  const build = await createOrKeep(buildObject(project, id, request, services.now()), services);
  try {
    await services.builds.store.record(pendingRow(build, project, request.commitMessage));
  } catch (error) {
    // The operator writes the same as soon as the ledger is back.
    services.logger.warn({ err: error, build: id }, "a build was asked for and is not in the ledger yet");
  }
  return id;
}

/** The same, with what the cluster refuses in the API's words. @throws Failure */
export async function startBuildOrFail(...call: Parameters<typeof startBuild>): Promise<string> {
  try {
    return await startBuild(...call);
  } catch (error) {
    if (!(error instanceof KubeError)) {
      throw error;
    }
    if (isForbidden(error) || isNotFound(error) || isNamespaceTerminating(error)) {
      throw failures.organizationRuntimeUnavailable();
    }
    throw failures.clusterUnavailable(error);
  }
}

async function createOrKeep(build: Build, { kube }: StartServices): Promise<Build> {
  const { namespace, name } = build.metadata;
  try {
    return await kube.create<Build>(buildResource, build, { fieldManager: fieldManagers.api });
  } catch (error) {
    if (!isAlreadyExists(error)) {
      throw error;
    }
    // Deleted between the two: it has ended.
    return (await kube.getOrUndefined<Build>(buildResource, { namespace, name })) ?? build;
  }
}
