import { mergePatch } from "@slipway/controller-runtime";
import {
  BUILDS_PULL_SECRET,
  newBuildId,
  nextSourceRevision,
  type Project,
  type ProjectSpec,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { ensureHook } from "../git/hooks.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { type ChangeOptions, type ChangeServices, changeProject } from "../projects/change.ts";
import type { Services } from "../services.ts";
import { requireBuilds } from "./platform.ts";
import { modeOf, runtimeErrors, sourceOf } from "./settings.ts";
import { type OpenedSource, openProjectSource } from "./source.ts";
import { type KnownRequest, type StartServices, startBuildOrFail } from "./start.ts";
import { recordPresentRefs } from "./triggered.ts";

/** Changes of a project's source. */

type Source = NonNullable<ProjectSpec["source"]>;
type Settings = NonNullable<ProjectSpec["build"]>;

/** The desired spec with the revision of its source; as it is when it changes nothing. Pure. */
export function withRevision(wanted: ProjectSpec, live: Pick<Project, "metadata" | "spec">): ProjectSpec {
  return mergePatch(live.spec, wanted) === undefined
    ? wanted
    : { ...wanted, sourceRevision: nextSourceRevision(wanted, live) };
}

/** Changes the spec and counts the revision. @throws Failure as `changeProject` */
export async function changeSource(
  project: ApiProject,
  services: ChangeServices,
  change: (spec: ProjectSpec, live: Project) => ProjectSpec,
  options: ChangeOptions = {},
): Promise<ApiProject> {
  const counted = (spec: ProjectSpec, live: Project): ProjectSpec => withRevision(change(spec, live), live);
  return (await changeProject(project, services, counted, options)).project;
}

/** @throws Failure 400 that names every setting that the runtime catalog refuses */
export function checkRuntime(
  settings: Settings,
  { runtimes }: Pick<Services, "runtimes">,
  prefix?: string,
): void {
  const errors = runtimeErrors(settings, runtimes(), prefix);
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
}

/** A source whose repository and branch were found. */
export interface CheckedSource {
  opened: OpenedSource;
  /** The branch's newest commit. */
  head: Pick<KnownRequest, "branch" | "commitSha" | "commitMessage">;
}

/**
 * Reads the repository and the branch of a source that was sent.
 * @param place where the source is in the body, such as `config.source.`, and its repository in that
 * @throws Failure 400 that names the field, 409 as `openProjectSource`, 503
 */
export async function checkSource(
  spec: Pick<ProjectSpec, "source" | "github">,
  organizationId: string,
  services: Pick<Services, "kube" | "git" | "now">,
  place: { prefix: string; repository: string },
): Promise<CheckedSource> {
  try {
    const opened = await openProjectSource({ spec: spec as ProjectSpec }, organizationId, services);
    const { branch = "" } = spec.source ?? spec.github ?? {};
    const { sha, title } = await opened.call((server, id) => server.commit(id, branch, { isPushed: true }));
    return { opened, head: { branch, commitSha: sha, commitMessage: title } };
  } catch (error) {
    throw ofField(error, place);
  }
}

/** What was not found was named in the body. */
function ofField(error: unknown, { prefix, repository }: { prefix: string; repository: string }): unknown {
  if (!(error instanceof Failure) || error.status !== 404) {
    return error;
  }
  const { code, message } = error;
  const field = code === "GIT_REF_NOT_FOUND" ? "branch" : repository;
  return failures.validation([{ field: `${prefix}${field}`, message, code }]);
}

/**
 * Changes the source of a project. Where pushes are published, the branch's newest commit is built immediately; elsewhere the next
 * deploy uses the source. Until then the project runs what it did.
 * @throws Failure as `checkSource` and `changeSource`
 */
export async function attachSource(
  project: ApiProject,
  { source: sent, build }: { source: Source; build: Settings },
  services: ChangeServices & StartServices & Pick<Services, "builds" | "git" | "repositoryIds" | "runtimes">,
): Promise<ApiProject> {
  const source = services.repositoryIds.kept(sent, project.resource.spec.source);
  checkRuntime(build, services, "build.");
  const place = { prefix: "source.", repository: "repository_id" };
  const { opened, head } = await checkSource({ source }, project.organizationId, services, place);
  requireBuilds(services);
  const changed = await changeSource(project, services, (spec) => {
    // The start command of the build takes the place of the command.
    const { image: _image, command: _command, github: _github, ...rest } = spec;
    return { ...rest, source, build };
  });
  await followSource(changed.resource, opened, services);
  if (modeOf(source) === "push") {
    const request: KnownRequest = { ...head, triggeredBy: "settings" };
    const buildId = newBuildId();
    await startBuildOrFail(changed.resource, buildId, request, services);
    await recordPresentRefs(changed.resource, opened, services, { buildId, request });
  } else {
    await recordPresentRefs(changed.resource, opened, services);
  }
  return changed;
}

/**
 * Ensures a webhook of the repository, where events of it start something. Without a hook refs are polled.
 */
export async function followSource(
  { spec, metadata }: Project,
  { connection, repositoryId: id, path }: Pick<OpenedSource, "connection" | "repositoryId" | "path">,
  services: Pick<Services, "kube" | "git" | "builds" | "logger">,
): Promise<void> {
  const { hookBase } = services.builds;
  const source = sourceOf(spec);
  if (hookBase === undefined || source === undefined || modeOf(source) === "manual") {
    return;
  }
  try {
    await ensureHook(connection, { id, path }, hookBase, services);
  } catch (error) {
    services.logger.info({ err: error, project: metadata.name }, "no hook could be made");
  }
}

/**
 * The spec without its source. What is published keeps running: its image becomes the project's own, and its command, where it is of before the source.
 * @throws Failure 409 when nothing was published
 */
export function withoutSource(spec: ProjectSpec, { status }: Pick<Project, "status">): ProjectSpec {
  if (spec.source === undefined) {
    return spec;
  }
  const { source: _source, build: _build, ...rest } = spec;
  const published = publishedImage(status);
  if (published === undefined) {
    throw failures.projectNotPublished();
  }
  return { ...rest, ...published };
}

function publishedImage(status: Project["status"]): Pick<ProjectSpec, "image" | "command"> | undefined {
  const serving = status?.deployments?.find((deployment) => deployment.status === "succeeded");
  if (serving?.settings.image) {
    const { digest } = serving.image;
    const { image, command } = serving.settings;
    return {
      image: { ...image, ...(digest === undefined ? {} : { digest }) },
      ...(command === undefined ? {} : { command }),
    };
  }
  const built = status?.build;
  // Delivered and not published: its deployment has failed, or its outcome is not known yet.
  if (built?.image?.digest === undefined || built.publishedBuild !== built.imageBuild) {
    return undefined;
  }
  const { reference, digest } = built.image;
  const url = reference.replace(/@sha256:[a-f0-9]{64}$/, "");
  return { image: { url, digest, isPublic: false, pullSecretRef: { name: BUILDS_PULL_SECRET } } };
}
