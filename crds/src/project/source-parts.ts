import { z } from "zod";
import { command, contextPath, text } from "../fields.ts";
import { rule, withRules } from "../rule.ts";
import { versionDeploy } from "./parts.ts";

const oneTrigger = {
  cel: "!(self.autoDeploy && has(self.versionDeploy) && self.versionDeploy.enabled)",
  check: (self: { autoDeploy: boolean; versionDeploy?: { enabled: boolean } }): boolean =>
    !(self.autoDeploy && self.versionDeploy?.enabled === true),
  message: "{autoDeploy} cannot be true while {versionDeploy.enabled} is true",
  fields: ["autoDeploy", "versionDeploy.enabled"],
};

const branch = text(1, 255, "Branch that is built.");

export const source = withRules(
  z
    .strictObject({
      connectionId: text(1, 64, "Id of the organization's Git connection."),
      repositoryId: text(1, 1024, "Opaque id of the repository within the connection."),
      branch,
      autoDeploy: z.boolean().describe("Whether every push to the branch is published."),
      versionDeploy: versionDeploy.optional(),
    })
    .describe("The Git repository that the application is built from."),
  [rule(oneTrigger)],
);

const buildFields = {
  runtime: text(1, 64, "Runtime of the runtime catalog.").optional(),
  version: text(1, 64, "Version of the runtime.").optional(),
  startCommand: command("Command that starts the application.").optional(),
  preBuildCommand: command("Command that runs before the build, usually to install dependencies.").optional(),
  buildCommand: command("Command that builds the application.").optional(),
};

export const build = z
  .strictObject({
    ...buildFields,
    dockerfilePath: text(
      1,
      256,
      "Path of a Dockerfile inside the build root; it takes the place of the runtime.",
    ).optional(),
    contextPath: contextPath.optional(),
  })
  .describe("How the application is built from its source.");

export const github = withRules(
  z
    .strictObject({
      repositoryOwner: text(1, 100, "Owner of the repository."),
      repositoryName: text(1, 100, "Name of the repository."),
      branch,
      autoDeploy: z.boolean().describe("Whether every push to the branch is published."),
      versionDeploy: versionDeploy.optional(),
      ...buildFields,
      contextPath: contextPath.optional(),
    })
    .describe("The older form of a Git source, kept for the github kind of repository."),
  [rule(oneTrigger)],
);
