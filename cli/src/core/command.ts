import type { RetryOptions, Slipway } from "@slipway/sdk";
import type { Output } from "./output.ts";
import type { Settings } from "./settings.ts";

/** What a command is: its own definition is what parses it, helps with it, completes it and documents it. */

export interface ArgumentDefinition {
  /** As it is written: `<project>`, `[deployment]`, `<command...>`. */
  readonly name: string;
  readonly description: string;
}

export interface OptionDefinition {
  /** As it is written: `-f, --follow`, `--port <number>`. */
  readonly flags: string;
  readonly description: string;
  /** May be given several times. */
  readonly isList?: boolean;
}

/** Words and options of a call. */
export interface Invocation extends Session {
  readonly args: readonly string[];
  /** By their names in camelCase. */
  readonly options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
}

/** What commands act with: nothing of them reads the process. */
export interface Session {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly output: Output;
  readonly settings: Settings;
  /** The API with the credential of the profile. @throws CliError without one */
  readonly slipway: () => Slipway;
  /** A server with another credential than the profile's. */
  readonly connect: (url: string, apiKey: string | undefined, retries?: RetryOptions) => Slipway;
  readonly input: { readonly isTerminal: boolean; readonly readAll: () => Promise<string> };
  /** Asks until `--yes`. @throws CliError where nobody can be asked */
  readonly confirm: (question: string) => Promise<void>;
  /** Runs a program of the machine with this terminal; its exit code, undefined where there is none of the name. */
  readonly spawn: (
    command: string,
    args: readonly string[],
    environment?: Readonly<Record<string, string>>,
  ) => Promise<number | undefined>;
  readonly sleep: (ms: number) => Promise<void>;
  /** Of all commands. */
  readonly definitions: () => Promise<readonly CommandDefinition[]>;
  readonly now: () => number;
}

export interface CommandDefinition {
  readonly name: string;
  readonly summary: string;
  /** More than the summary, in Markdown. */
  readonly details?: string;
  readonly args?: readonly ArgumentDefinition[];
  readonly options?: readonly OptionDefinition[];
  readonly subcommands?: readonly CommandDefinition[];
  /** The exit code; 0 unless it returns one. */
  readonly run?: (call: Invocation) => Promise<number | undefined>;
}

/** A failure that its message explains, with what to do about it. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Exit codes: 1 is a failure of what was asked for, 2 a call that no command has. */
export const USAGE_EXIT = 2;

/** An option's text, undefined without it. */
export const textOf = (call: Invocation, name: string): string | undefined => {
  const value = call.options[name];
  return typeof value === "string" ? value : undefined;
};

/** A whole number of an option. @throws CliError for anything else */
export function numberOf(call: Invocation, name: string): number | undefined {
  const text = textOf(call, name);
  if (text !== undefined && !/^\d{1,9}$/.test(text)) {
    throw new CliError(`--${name} takes a whole number, not ${JSON.stringify(text)}`, USAGE_EXIT);
  }
  return text === undefined ? undefined : Number(text);
}
