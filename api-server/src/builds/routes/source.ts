import { instanceTypes, type ProjectSpec } from "@slipway/crds";
import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { MAX_CONCURRENT } from "../../git/routes/connections.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { type ApiProject, requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import type { Services } from "../../services.ts";
import { attachSource, changeSource, checkRuntime, withoutSource } from "../change-source.ts";
import {
  buildBody,
  buildPatchBody,
  normalizeBuildPath,
  normalizePath,
  sourceBody,
  toSource,
  withSettings,
} from "../settings.ts";
import { openProjectSource, sourceContext, sourceView } from "../source.ts";
import { projectionAnswer } from "../view.ts";

const PATH = "/v1/project/:id/source";
const responses = { 200: { description: "The source as it is now.", schema: projectionAnswer } };

async function projection(
  project: ApiProject,
  services: Pick<Services, "git" | "kube" | "logger" | "now" | "repositoryIds">,
) {
  const context = await sourceContext(project.resource, project.organizationId, services);
  return { status: 200, body: { status: "success", data: sourceView(project.resource, context) } };
}

export const readSource = defineProjectRoute({
  operationId: "readProjectSource",
  method: "GET",
  path: PATH,
  summary: "Read a project's Git source",
  tags: ["Source"],
  responses,
  maxConcurrent: MAX_CONCURRENT,
  handler: ({ project }, services) => {
    requireType(project, instanceTypes);
    return projection(project, services);
  },
});

export const updateSource = defineProjectRoute({
  operationId: "updateProjectSource",
  method: "PUT",
  path: PATH,
  summary: "Attach a Git source to a project, or change it",
  description:
    "The repository and the branch must be there. With auto_deploy the branch's newest commit is built at once; otherwise the next " +
    "deploy uses the source. Until then the project goes on as it is.",
  tags: ["Source"],
  body: z.strictObject({ source: sourceBody, build: buildBody }),
  prepareBody: normalizeBuildPath,
  responses,
  refusals: [409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async ({ project, body }, services) => {
    requireType(project, instanceTypes);
    const build = withSettings({}, body.build as Record<string, unknown>);
    const changed = await attachSource(
      project,
      { source: toSource(body.source), build: build as NonNullable<ProjectSpec["build"]> },
      services,
    );
    return projection(changed, services);
  },
});

export const removeSource = defineProjectRoute({
  operationId: "deleteProjectSource",
  method: "DELETE",
  path: PATH,
  summary: "Detach a project's Git source",
  description:
    "Nothing is deployed from it any more. What is published stays: its image becomes the project's image. Before anything is " +
    "published it is refused.",
  tags: ["Source"],
  responses,
  refusals: [409],
  handler: async ({ project }, services) => {
    requireType(project, instanceTypes);
    return projection(await changeSource(project, services, withoutSource), services);
  },
});

export const updateBuildSettings = defineProjectRoute({
  operationId: "updateBuildSettings",
  method: "PATCH",
  path: "/v1/project/:id/build-settings",
  summary: "Change how a project is built",
  description:
    "What is left out stays; null takes a command away. It holds from the next build on: nothing is built by itself.",
  tags: ["Source"],
  body: buildPatchBody,
  prepareBody: normalizePath,
  responses,
  refusals: [409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async ({ project, body }, services) => {
    requireType(project, instanceTypes);
    const changed = await changeSource(
      project,
      services,
      (spec) => {
        if (spec.source === undefined) {
          throw failures.gitSourceRequired();
        }
        const build = withSettings(spec.build ?? {}, body as Record<string, unknown>);
        checkRuntime(build, services);
        return { ...spec, build };
      },
      { fields: { build: "" } },
    );
    return projection(changed, services);
  },
});

export const listSourceBranches = defineProjectRoute({
  operationId: "listSourceBranches",
  method: "GET",
  path: "/v1/project/:id/source/branches",
  summary: "List the branches of a project's repository",
  description: "At most 1,000.",
  tags: ["Source"],
  responses: {
    200: {
      description: "Its branches.",
      schema: success({ data: z.array(z.object({ name: z.string(), commit_sha: z.string() })) }),
    },
  },
  refusals: [409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async ({ project }, services) => {
    const { resource, organizationId } = project;
    const opened = await openProjectSource(resource, organizationId, services);
    const branches = await opened.call((server, id) => server.branches(id));
    const data = branches.map(({ name, commitSha }) => ({ name, commit_sha: commitSha }));
    return { status: 200, body: { status: "success", data } };
  },
});
