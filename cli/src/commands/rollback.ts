import { eachDeployment } from "@slipway/sdk";
import { CliError, type CommandDefinition, numberOf } from "../core/command.ts";
import { findProject } from "../core/project.ts";
import { followDeployment } from "../core/rollout.ts";

export const rollback: CommandDefinition = {
  name: "rollback",
  summary: "Return to an earlier deployment",
  details:
    "Without one to the last that succeeded before the newest. A new deployment begins, and is followed to its end.",
  args: [
    { name: "<project>", description: "id or name" },
    { name: "[deployment]", description: "id of a deployment" },
  ],
  options: [
    { flags: "--no-follow", description: "end once it has begun" },
    { flags: "--timeout <seconds>", description: "how long it is followed; 1,800 without it" },
  ],
  run: async (call) => {
    const slipway = call.slipway();
    const { id } = await findProject(slipway, call.args[0] ?? "");
    const timeoutMs = (numberOf(call, "timeout") ?? 1_800) * 1_000;
    let newest: string | undefined;
    let target = call.args[1];
    for await (const deployment of eachDeployment(slipway, id)) {
      if (newest !== undefined && target === undefined && deployment.status === "succeeded") {
        target = deployment.id;
      }
      newest ??= deployment.id;
      if (target !== undefined) {
        break;
      }
    }
    if (target === undefined) {
      throw new CliError("no earlier deployment of this month has succeeded: give the id of one");
    }
    await call.confirm(`return to deployment ${target}?`);
    const body = { deployment_id: target };
    const { message } = await slipway.POST("/v1/project/{id}/rollback", { params: { path: { id } }, body });
    call.output.note(message);
    return call.options.follow === false ? 0 : followDeployment(call, id, newest, timeoutMs);
  },
};
