import { createProjectBodies, newBuildId, type Project, type ProjectSpec } from "@slipway/crds";
import { isTagPattern } from "@slipway/git";
import { z } from "zod";
import { changeSource, followSource } from "../../builds/change-source.ts";
import { manualRequest } from "../../builds/commit.ts";
import { requireBuilds } from "../../builds/platform.ts";
import {
  mergeDeploySettings,
  modeOf,
  normalizePath,
  versionDeployView,
  withSettings,
} from "../../builds/settings.ts";
import { requireConnected } from "../../builds/source.ts";
import { startBuildOrFail } from "../../builds/start.ts";
import { recordPresentRefs } from "../../builds/triggered.ts";
import { startedSchema, versionDeploySchema } from "../../builds/view.ts";
import { failures } from "../../errors/catalog.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { atLeastOneField } from "../../http/validate.ts";
import { refuseStart } from "../../organizations/service.ts";
import { success } from "../../projects/routes/schemas.ts";
import { MAX_CONCURRENT } from "./connections.ts";

type Github = NonNullable<ProjectSpec["github"]>;

const commands = atLeastOneField(
  (
    (
      (createProjectBodies.http.shape.config as z.ZodObject).shape.github as z.ZodOptional
    ).unwrap() as z.ZodObject
  )
    .pick({ start_command: true, pre_build_command: true, build_command: true, context_path: true })
    .partial()
    .strict(),
);

/** @throws Failure 400 for a project of another kind, 409 when it has changed since the caller's project was read */
export function githubOf(spec: ProjectSpec, read: Pick<Project, "spec">): Github {
  if (spec.github === undefined) {
    throw failures.gitSourceRequired();
  }
  const repository = ({ repositoryOwner, repositoryName, branch }: Github) => [
    repositoryOwner,
    repositoryName,
    branch,
  ];
  const before = read.spec.github;
  if (before && String(repository(before)) !== String(repository(spec.github))) {
    throw failures.gitSourceChanged();
  }
  return spec.github;
}

export const updateGithubCommands = defineProjectRoute({
  operationId: "updateGithubCommands",
  method: "PATCH",
  path: "/v1/project/:id/github/commands",
  summary: "Change the commands of a GitHub project, and build it",
  description: "What is left out stays; null takes a command away.",
  tags: ["Builds"],
  body: commands,
  prepareBody: normalizePath,
  responses: {
    202: { description: "The build begins.", schema: success({ message: z.string(), data: startedSchema }) },
  },
  refusals: [402, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async ({ project: of, body }, services) => {
    githubOf(of.resource.spec, of.resource);
    // Before anything is changed: settings that no build can use are rejected.
    const opened = await requireConnected(
      githubOf(of.resource.spec, of.resource),
      of.organizationId,
      services,
    );
    await refuseStart(services, of.organizationId);
    const request = await manualRequest(of.resource, {}, opened, "settings");
    requireBuilds(services);
    const changed = await changeSource(
      of,
      services,
      (spec) => ({
        ...spec,
        github: withSettings(githubOf(spec, of.resource), body as Record<string, unknown>),
      }),
      { fields: { github: "" } },
    );
    const build_id = await startBuildOrFail(changed.resource, newBuildId(), request, services);
    return { status: 202, body: { status: "success", message: "the build begins", data: { build_id } } };
  },
});

const deploySettings = atLeastOneField(
  z.strictObject({
    auto_deploy: z.boolean().optional(),
    version_deploy: z
      .strictObject({
        enabled: z.boolean().optional(),
        event: z.enum(["tag", "release"]).optional(),
        tag_pattern: z
          .string()
          .min(1)
          .max(255)
          .refine(
            isTagPattern,
            "may hold the wildcards * and ? only: no other glob syntax, no control characters",
          )
          .optional(),
        include_prereleases: z.boolean().optional(),
      })
      .optional(),
  }),
);

export const updateGithubDeploySettings = defineProjectRoute({
  operationId: "updateGithubDeploySettings",
  method: "PATCH",
  path: "/v1/project/:id/github/deploy-settings",
  summary: "Change when a GitHub project is published",
  description:
    "Laid over the current settings; exactly one mode must come of it. What publishes by itself needs the repository connected.",
  tags: ["Builds"],
  body: deploySettings,
  responses: {
    200: {
      description: "The settings as they are now.",
      schema: success({
        data: z.object({
          repository_owner: z.string(),
          repository_name: z.string(),
          branch: z.string(),
          auto_deploy: z.boolean(),
          version_deploy: versionDeploySchema,
        }),
      }),
    },
  },
  refusals: [409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async ({ project: of, body }, services) => {
    const withSent = (github: Github): Github => {
      const { versionDeploy: _before, ...rest } = github;
      return { ...rest, ...mergeDeploySettings(github, body) };
    };
    const wanted = withSent(githubOf(of.resource.spec, of.resource));
    // Turning automatic deployment off needs no further permission.
    const opened =
      modeOf(wanted) === "manual" ? undefined : await requireConnected(wanted, of.organizationId, services);
    const changed = await changeSource(of, services, (spec) => ({
      ...spec,
      github: withSent(githubOf(spec, of.resource)),
    }));
    if (opened) {
      await followSource(changed.resource, opened, services);
      await recordPresentRefs(changed.resource, opened, services);
    }
    const { repositoryOwner, repositoryName, branch, autoDeploy, versionDeploy } = changed.resource.spec
      .github as Github;
    const data = {
      repository_owner: repositoryOwner,
      repository_name: repositoryName,
      branch,
      auto_deploy: autoDeploy,
      version_deploy: versionDeployView(versionDeploy),
    };
    return { status: 200, body: { status: "success", data } };
  },
});
