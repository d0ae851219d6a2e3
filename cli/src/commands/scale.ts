import { CliError, type CommandDefinition, numberOf, textOf, USAGE_EXIT } from "../core/command.ts";
import { findProject } from "../core/project.ts";

export const scale: CommandDefinition = {
  name: "scale",
  summary: "Change the number of instances, or the plan",
  args: [
    { name: "<project>", description: "id or name" },
    { name: "[instances]", description: "how many run" },
  ],
  options: [{ flags: "--plan <plan>", description: "id of another plan" }],
  run: async (call) => {
    const [name = "", text] = call.args;
    const plan = textOf(call, "plan");
    if (text === undefined && plan === undefined) {
      throw new CliError("give the number of instances, or --plan", USAGE_EXIT);
    }
    const instances = numberOf({ ...call, options: { instances: text } }, "instances");
    const slipway = call.slipway();
    const project = await findProject(slipway, name);
    const on = { params: { path: { id: project.id } } };
    if (plan !== undefined && plan !== project.plan) {
      const { message } = await slipway.PATCH("/v1/project/{id}/plan", {
        ...on,
        body: { plan, payment_mode: project.payment_mode },
      });
      call.output.note(message);
    }
    if (instances !== undefined && instances !== project.instances) {
      const { message } = await slipway.PATCH("/v1/project/{id}/autoscaling", { ...on, body: { instances } });
      call.output.note(message);
    }
    const { id, plan: planAfter, instances: instancesAfter } = await findProject(slipway, project.id);
    await call.output.object({ id, plan: planAfter, instances: instancesAfter });
    return 0;
  },
};
