import { createSlipway, type SlipwayOptions } from "@slipway/sdk";
import { type Command, CommanderError } from "commander";
import { commands } from "./commands/index.ts";
import { CliError, type CommandDefinition, type Session, USAGE_EXIT } from "./core/command.ts";
import { describeFailure } from "./core/failures.ts";
import { createOutput, type Format, hasColour, type Streams } from "./core/output.ts";
import { readProfiles } from "./core/profiles.ts";
import { createProgram, toParser } from "./core/program.ts";
import { profilePath, resolveSettings } from "./core/settings.ts";

/** The machine that a call runs on. */
export interface Host extends Pick<Session, "input" | "spawn" | "sleep" | "now"> {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly streams: Streams;
  readonly isOutputTerminal: boolean;
  /** What is answered to a question. */
  readonly ask: (question: string) => Promise<string>;
  /** How requests are sent; the global `fetch` unless given. */
  readonly fetch?: SlipwayOptions["fetch"];
}

export const VERSION = "0.1.0";

/** Runs one call of the command line; its exit code. */
export async function runCli(argv: readonly string[], host: Host): Promise<number> {
  let exitCode = 0;
  const handle = async (definition: CommandDefinition, args: readonly string[], options: object) => {
    const session = await openSession(options as Globals, host);
    exitCode =
      (await definition.run?.({ ...session, args, options: options as Record<string, string> })) ?? 0;
  };
  try {
    const program = createProgram(VERSION);
    await addCommands(program, argv[0], handle);
    configure(program, host.streams);
    await program.parseAsync(argv.length === 0 ? ["--help"] : argv, { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? 0 : USAGE_EXIT;
    }
    const failure = describeFailure(error);
    host.streams.err(`slipway: ${failure.message}\n`);
    return failure.exitCode;
  }
}

/** The command that is called with all of its definition; all others by their summaries. */
async function addCommands(
  program: Command,
  called: string | undefined,
  handle: Parameters<typeof toParser>[1],
) {
  for (const [name, { summary, load }] of Object.entries(commands)) {
    program.addCommand(toParser(name === called ? await load() : { name, summary }, handle));
  }
}

/** Nothing of the parser ends the process or writes past the streams. */
function configure(command: Command, { out, err }: Streams): void {
  command
    .exitOverride()
    .configureOutput({ writeOut: out, writeErr: err })
    .showHelpAfterError("(--help lists what there is)");
  for (const each of command.commands) {
    configure(each, { out, err });
  }
}

interface Globals {
  readonly output?: Format;
  readonly profile?: string;
  readonly url?: string;
  readonly yes?: boolean;
}

async function openSession(options: Globals, host: Host): Promise<Session> {
  const { environment, streams, isOutputTerminal, input, spawn, sleep, now } = host;
  const settings = resolveSettings(await readProfiles(profilePath(environment)), options, environment);
  const connect: Session["connect"] = (url, apiKey, retries) =>
    createSlipway({
      url,
      apiKey,
      retries,
      fetch: host.fetch,
      headers: { "user-agent": `slipway-cli/${VERSION}` },
    });
  return {
    environment,
    output: createOutput(options.output ?? "table", hasColour(isOutputTerminal, environment), streams),
    settings,
    connect,
    slipway: () => {
      const { url, apiKey } = settings;
      if (url === undefined || apiKey === undefined) {
        const missing = url === undefined ? "no server is known" : "no API key is known";
        throw new CliError(`${missing}: run \`slipway login\`, or set SLIPWAY_URL and SLIPWAY_API_KEY`);
      }
      return connect(url, apiKey);
    },
    input,
    confirm: async (question) => {
      if (options.yes === true) {
        return;
      }
      if (!input.isTerminal) {
        throw new CliError(`${question} nobody can be asked here: add --yes`);
      }
      if (!/^y(es)?$/i.test((await host.ask(`${question} [y/N] `)).trim())) {
        throw new CliError("nothing was changed");
      }
    },
    spawn,
    sleep,
    now,
    definitions: () => Promise.all(Object.values(commands).map(({ load }) => load())),
  };
}
