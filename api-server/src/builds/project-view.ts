import type { Project } from "@slipway/crds";
import { versionDeployView } from "./settings.ts";

/** What a project that is built from Git shows of that, beside its source. Pure. */
export function builtView({ spec, status }: Pick<Project, "spec" | "status">) {
  return { ...githubOf(spec), ...failureOf(status) };
}

function githubOf({ github }: Project["spec"]) {
  if (github === undefined) {
    return {};
  }
  const { repositoryOwner, repositoryName, branch, autoDeploy, versionDeploy, contextPath } = github;
  const { runtime, version, startCommand, preBuildCommand, buildCommand } = github;
  return {
    github: {
      repository_owner: repositoryOwner,
      repository_name: repositoryName,
      branch,
      auto_deploy: autoDeploy,
      version_deploy: versionDeployView(versionDeploy),
      runtime: runtime ?? null,
      version: version ?? null,
      start_command: startCommand ?? null,
      pre_build_command: preBuildCommand ?? null,
      build_command: buildCommand ?? null,
      context_path: contextPath ?? ".",
    },
  };
}

function failureOf(status: Project["status"]) {
  const failure = status?.buildFailure;
  if (failure === undefined) {
    return {};
  }
  const { buildId, code, message, at } = failure;
  return {
    build_failure: {
      build_id: buildId,
      ...(code === undefined ? {} : { error_code: code }),
      ...(message === undefined ? {} : { error_message: message }),
      ...(at === undefined ? {} : { failed_at: new Date(at).toISOString() }),
    },
  };
}
