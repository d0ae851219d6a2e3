import { firstBuildId, type Project } from "@slipway/crds";
import type { Services } from "../services.ts";
import { type CheckedSource, checkSource, followSource } from "./change-source.ts";
import { type KnownRequest, type StartServices, startBuild } from "./start.ts";
import { recordPresentRefs } from "./triggered.ts";

/** The build that the creation of a project from Git starts: of the branch's newest commit, whatever the mode. */

export type FirstBuild = CheckedSource;

const SOURCE = { prefix: "config.source.", repository: "repository_id" };
const GITHUB = { prefix: "config.github.", repository: "repository_name" };

/** @throws Failure 400 that names the field, 409, 503; undefined for a project from an image */
export async function checkFirstBuild(
  { spec }: Pick<Project, "spec">,
  organizationId: string,
  services: Pick<Services, "kube" | "git" | "now">,
): Promise<FirstBuild | undefined> {
  if (spec.source !== undefined) {
    return checkSource(spec, organizationId, services, SOURCE);
  }
  return spec.github && checkSource(spec, organizationId, services, GITHUB);
}

const requestOf = ({ head }: FirstBuild): KnownRequest => ({ ...head, triggeredBy: "creation" });

/** @throws Failure 503; KubeError */
export async function startFirstBuild(
  project: Project,
  first: FirstBuild,
  services: StartServices,
): Promise<void> {
  const id = firstBuildId(project.metadata.name);
  await startBuild(project, id, requestOf(first), services, { isRepeat: true });
}

/** Subscribes to the source after the first build has started. A failure only logs: sources are polled, too. */
export async function followFirstBuild(
  project: Project,
  first: FirstBuild,
  services: Pick<Services, "builds" | "git" | "kube" | "logger">,
): Promise<void> {
  const build = { buildId: firstBuildId(project.metadata.name), request: requestOf(first) };
  try {
    await followSource(project, first.opened, services);
    await recordPresentRefs(project, first.opened, services, build);
  } catch (error) {
    services.logger.warn({ err: error, project: project.metadata.name }, "a new source is not followed yet");
  }
}
