import { CommandError } from "./exec.ts";

/** A failure whose message states what to do about it; printed without a stack trace. */
export class UserError extends Error {
  readonly log: string | undefined;

  constructor(message: string, log?: string) {
    super(message);
    this.name = "UserError";
    this.log = log;
  }
}

let depth = 0;

/** Seconds with one decimal, as in `3.4 s`. */
export function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

/** Prints one line, indented under the step that is running. */
export function say(line: string): void {
  process.stdout.write(`${"    ".repeat(depth)}${line}\n`);
}

/**
 * Runs one step of a script, printing its name and its time. A failure is printed where it happens,
 * with the log that has the details, and rethrown.
 */
export async function step<T>(name: string, work: () => Promise<T>, log?: string): Promise<T> {
  const start = performance.now();
  say(`==> ${name}`);
  depth++;
  try {
    const result = await work();
    say(`done in ${seconds(performance.now() - start)}`);
    return result;
  } catch (error) {
    if (error instanceof Error && !(error instanceof StepFailed)) {
      throw new StepFailed(name, error, performance.now() - start, log);
    }
    throw error;
  } finally {
    depth--;
  }
}

/** The failure of a named step; its message is all that a user needs. */
export class StepFailed extends Error {
  constructor(name: string, cause: Error, milliseconds: number, log?: string) {
    const place =
      (cause instanceof UserError || cause instanceof CommandError ? cause.log : undefined) ?? log;
    const lines = [`${name} failed after ${seconds(milliseconds)}: ${cause.message}`];
    if (place) {
      lines.push(`see ${place}`);
    }
    super(lines.join("\n"), { cause });
    this.name = "StepFailed";
  }
}
