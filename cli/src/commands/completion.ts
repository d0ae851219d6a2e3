import { CliError, type CommandDefinition, USAGE_EXIT } from "../core/command.ts";
import { completionScript, SHELLS } from "../core/completion.ts";

export const completion: CommandDefinition = {
  name: "completion",
  summary: "Print a shell's completion",
  details:
    "For bash `source <(slipway completion bash)`, for zsh the same with `zsh`, for fish `slipway completion fish | source`.",
  args: [{ name: "<shell>", description: "bash, zsh or fish" }],
  run: async ({ args: [name], output, definitions }) => {
    const shell = SHELLS.find((one) => one === name);
    if (shell === undefined) {
      throw new CliError(`there is completion for ${SHELLS.join(", ")}, not for ${name}`, USAGE_EXIT);
    }
    output.line(completionScript(shell, await definitions()).trimEnd());
    return 0;
  },
};
