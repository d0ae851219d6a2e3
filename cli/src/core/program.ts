import { Command, Option } from "commander";
import type { CommandDefinition } from "./command.ts";
import { FORMATS } from "./output.ts";

/** Called with the words and options of a call. */
export type Handle = (
  definition: CommandDefinition,
  args: readonly string[],
  options: Readonly<Record<string, unknown>>,
) => Promise<void>;

/** Options of every command. */
export const GLOBAL_OPTIONS = [
  { flags: "-o, --output <format>", description: "table, json or yaml; a table without it" },
  {
    flags: "--profile <name>",
    description: "profile to use; `SLIPWAY_PROFILE` or the last one logged in to without it",
  },
  { flags: "--url <address>", description: "address of the API; `SLIPWAY_URL` or the profile's without it" },
  { flags: "-y, --yes", description: "ask nothing" },
] as const;

/** The parser of a definition. */
export function toParser(definition: CommandDefinition, handle: Handle): Command {
  const { name, summary, details, args = [], options = [], subcommands = [], run } = definition;
  const command = new Command(name)
    .summary(summary)
    .description([summary, details].filter(Boolean).join("\n\n"));
  for (const argument of args) {
    command.argument(argument.name, argument.description);
  }
  for (const { flags, description, isList } of options) {
    const option = new Option(flags, description);
    command.addOption(
      isList ? option.argParser((value: string, before: string[] = []) => [...before, value]) : option,
    );
  }
  for (const subcommand of subcommands) {
    command.addCommand(toParser(subcommand, handle));
  }
  if (run !== undefined) {
    for (const { flags, description } of GLOBAL_OPTIONS) {
      const option = new Option(flags, description);
      command.addOption(flags.includes("--output") ? option.choices(FORMATS) : option);
    }
    command.action(() => {
      const words = command.processedArgs.flat().filter((word): word is string => typeof word === "string");
      return handle(definition, words, command.opts());
    });
  }
  return command;
}

/** The parser of the program: of one command, or of all by their summaries. */
export function createProgram(version: string): Command {
  return new Command("slipway")
    .description("Projects on Slipway: applications, jobs and databases")
    .version(version)
    .usage("COMMAND [options]")
    .helpCommand(false);
}
