import { type GitConnection, newBuildId, organizationOfNamespace, type Project } from "@slipway/crds";
import { GitError, type GitEvent, openRepositoryId, type TriggeredBuild, triggeredBy } from "@slipway/git";
import type { BuildTrigger, GitDelivery } from "@slipway/ledger";
import { Failure } from "../errors/failure.ts";
import { findConnection } from "../git/cluster.ts";
import type { Services } from "../services.ts";
import { modeOf, sourceOf, triggerSettings } from "./settings.ts";
import { type OpenedSource, openProjectSource, repositoryPath } from "./source.ts";
import { type KnownRequest, type StartServices, startBuildOrFail } from "./start.ts";

/** Starts builds of events at Git servers: pushes, tags, releases. */

type TriggerServices = StartServices & Pick<Services, "git" | "projects">;

/** The projects that a repository's event starts builds of, and which. Pure. */
export function startedBy(
  event: GitEvent,
  connection: Pick<GitConnection, "metadata" | "spec">,
  projects: readonly Project[],
): { project: Project; triggered: TriggeredBuild }[] {
  return projects.flatMap((project) => {
    const source = sourceOf(project.spec);
    if (project.metadata.deletionTimestamp !== undefined || source === undefined) {
      return [];
    }
    if (!isOf(project.spec, connection, event)) {
      return [];
    }
    const triggered = triggeredBy(event, triggerSettings(source));
    return triggered === undefined ? [] : [{ project, triggered }];
  });
}

/** Whether an event is of a project's repository: GitHub's are known by their path, as others by their id. */
function isOf(
  { source, github }: Project["spec"],
  { metadata, spec }: Pick<GitConnection, "metadata" | "spec">,
  event: GitEvent,
): boolean {
  if (source) {
    return source.connectionId === metadata.name && repositoryOf(source) === event.repository;
  }
  if (github === undefined || spec.providerId !== "github") {
    return false;
  }
  return repositoryPath(github).toLowerCase() === event.path?.toLowerCase();
}

function repositoryOf({
  connectionId,
  repositoryId,
}: NonNullable<Project["spec"]["source"]>): string | undefined {
  try {
    return openRepositoryId(connectionId, repositoryId);
  } catch (error) {
    if (error instanceof GitError) {
      return undefined;
    }
    throw error;
  }
}

/**
 * Starts what an event starts, in every project of the connection's organization. Coming twice, or coming while a poll finds the
 * same, it starts each build once.
 * @throws Failure 503: then the sender shall send it again. What only one project's settings are to blame for is logged.
 */
export async function onGitEvent(
  connection: GitConnection,
  event: GitEvent,
  services: TriggerServices,
): Promise<void> {
  const { namespace = "" } = connection.metadata;
  const organizationId = organizationOfNamespace(namespace) ?? "";
  const projects = services.projects.list(organizationId).map(({ resource }) => resource);
  for (const { project, triggered } of startedBy(event, connection, projects)) {
    try {
      await startTriggered(project, triggered, services);
    } catch (error) {
      if (!(error instanceof Failure) || error.status >= 500) {
        throw error;
      }
      services.logger.info({ project: project.metadata.name, code: error.code }, "an event starts no build");
    }
  }
}

/** Starts one build for a trigger, unless there was one. @returns its id; null when none was to be started */
export async function startTriggered(
  project: Project,
  triggered: TriggeredBuild,
  services: TriggerServices,
): Promise<string | null> {
  if (sourceOf(project.spec) === undefined) {
    return null;
  }
  const organizationId = organizationOfNamespace(project.metadata.namespace ?? "") ?? "";
  const opened = await openProjectSource(project, organizationId, services);
  const request = await requestOf(triggered, opened);
  const claimed = await services.builds.store.claim(triggerOf(project, request), newBuildId());
  if (claimed === null) {
    return null;
  }
  return startBuildOrFail(project, claimed, request, services, { isRepeat: true });
}

/** Deliveries arrive in any order: of a branch the newest commit is built, whichever push reported it. */
async function requestOf(
  triggered: TriggeredBuild,
  { call }: Pick<OpenedSource, "call">,
): Promise<KnownRequest> {
  if (triggered.trigger === "push") {
    const { branch } = triggered;
    const { sha, title } = await call((server, id) => server.commit(id, branch, { isPushed: true }));
    return { triggeredBy: "push", branch, commitSha: sha, commitMessage: title };
  }
  const { trigger, tag, commitSha } = triggered;
  const { sha, title } = await call((server, id) => server.commit(id, commitSha ?? tag));
  return { triggeredBy: trigger, tag, commitSha: sha, commitMessage: title };
}

/** The key of a trigger in the ledger. Pure. */
export function triggerOf(
  { metadata }: Project,
  { triggeredBy: trigger, branch, tag, commitSha }: KnownRequest,
): BuildTrigger {
  return {
    organizationId: organizationOfNamespace(metadata.namespace ?? "") ?? "",
    projectUid: metadata.uid ?? "",
    trigger,
    ref: tag ?? branch ?? "",
    commitSha,
  };
}

/**
 * Records what exists when a project begins to publish: versions that existed before start nothing, and neither does the
 * commit that a build was just requested for.
 * @param buildId the build of the branch's commit
 */
export async function recordPresentRefs(
  project: Project,
  { call }: Pick<OpenedSource, "call">,
  { builds }: Pick<Services, "builds">,
  first?: { buildId: string; request: KnownRequest },
): Promise<void> {
  const source = sourceOf(project.spec);
  if (source === undefined) {
    return;
  }
  const mode = modeOf(source);
  if (mode === "push" && first?.request.branch === source.branch) {
    await builds.store.claim(triggerOf(project, { ...first.request, triggeredBy: "push" }), first.buildId);
  }
  if (mode !== "tag" && mode !== "release") {
    return;
  }
  const tags = await call((server, id) => server.tags(id));
  const released =
    mode === "release"
      ? new Set(
          (await call((server, id) => server.releases(id)))
            .filter(({ draft }) => !draft)
            .map(({ tag }) => tag),
        )
      : undefined;
  const present = tags.filter(({ name }) => released?.has(name) ?? true);
  if (present.length === 0) {
    return;
  }
  await builds.store.recordTriggers(
    present.map(({ name, commitSha }) => triggerOf(project, { triggeredBy: mode, tag: name, commitSha })),
  );
}

/**
 * Starts the builds of a delivery from the queue; none when its connection was deleted or revoked meanwhile.
 * @throws Failure 503: then it shall be tried again
 */
export async function onDelivery(
  { organizationId, connectionId }: GitDelivery,
  event: GitEvent,
  services: TriggerServices,
): Promise<void> {
  const connection = await findConnection(services.kube, organizationId, connectionId).catch(
    (error: unknown) => {
      if (error instanceof Failure && error.status === 404) {
        return undefined;
      }
      throw error;
    },
  );
  if (connection === undefined || connection.spec.revokedAt !== undefined) {
    return;
  }
  await onGitEvent(connection, event, services);
}
