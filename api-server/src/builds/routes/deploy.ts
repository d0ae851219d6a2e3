import { newBuildId } from "@slipway/crds";
import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { MAX_CONCURRENT } from "../../git/routes/connections.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { refuseStart } from "../../organizations/service.ts";
import type { OperationId } from "../../policy/table.ts";
import { applicationTypes, requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { manualRequest, refuseOverride } from "../commit.ts";
import { requireBuilds } from "../platform.ts";
import { sourceOf } from "../settings.ts";
import { openProjectSource } from "../source.ts";
import { startBuildOrFail } from "../start.ts";
import { deployBody, githubDeployBody, startedSchema } from "../view.ts";

interface Family {
  operationId: OperationId;
  path: `/${string}`;
  body: typeof deployBody | typeof githubDeployBody;
  /** Whether it is for projects of the legacy kind alone. */
  isGithub: boolean;
}

const deployRoute = ({ operationId, path, body, isGithub }: Family) =>
  defineProjectRoute({
    operationId,
    method: "POST",
    path,
    summary: "Build and publish",
    description:
      "The branch's newest commit, or the one that is named. Where tags or releases are published the body is empty, and the latest " +
      "version that matches the pattern is published.",
    tags: ["Builds"],
    body,
    responses: {
      202: {
        description: "The build begins.",
        schema: success({ message: z.string(), data: startedSchema }),
      },
    },
    refusals: [402, 409],
    maxConcurrent: MAX_CONCURRENT,
    handler: async ({ project: of, body: sent }, services) => {
      requireType(of, applicationTypes);
      const { github } = of.resource.spec;
      if ((isGithub ? github : sourceOf(of.resource.spec)) === undefined) {
        throw failures.gitSourceRequired();
      }
      const wanted = { branch: sent?.branch, commitSha: sent?.commit_sha };
      refuseOverride(of.resource.spec, wanted);
      await refuseStart(services, of.organizationId);
      const opened = await openProjectSource(of.resource, of.organizationId, services);
      const request = await manualRequest(of.resource, wanted, opened);
      requireBuilds(services);
      const build_id = await startBuildOrFail(of.resource, newBuildId(), request, services);
      return { status: 202, body: { status: "success", message: "the build begins", data: { build_id } } };
    },
  });

export const deploy = deployRoute({
  operationId: "deployProject",
  path: "/v1/project/:id/deploy",
  body: deployBody,
  isGithub: false,
});
export const githubDeploy = deployRoute({
  operationId: "deployGithubProject",
  path: "/v1/project/:id/github/deploy",
  body: githubDeployBody,
  isGithub: true,
});
