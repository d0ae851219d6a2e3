import { AsyncLocalStorage } from "node:async_hooks";
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

interface Place {
  /** The step's name, or that of the outermost step that it is part of. */
  readonly outermost: string;
  readonly depth: number;
}
const place = new AsyncLocalStorage<Place>();
/** Outermost steps under way. */
let underWay = 0;

/** Seconds with one decimal, as in `3.4 s`. */
export function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

/** Prints one line, indented under the step that is running, which it names while others run beside it. */
export function say(line: string): void {
  const { outermost = "", depth = 0 } = place.getStore() ?? {};
  const name = underWay > 1 && depth > 0 ? `${outermost}: ` : "";
  process.stdout.write(`${"    ".repeat(depth)}${name}${line}\n`);
}

/**
 * Runs one step of a script, printing its name and its time. A failure is printed where it happens,
 * with the log that has the details, and rethrown.
 */
export async function step<T>(name: string, work: () => Promise<T>, log?: string): Promise<T> {
  const start = performance.now();
  say(`==> ${name}`);
  const { outermost = name, depth = 0 } = place.getStore() ?? {};
  underWay += depth === 0 ? 1 : 0;
  try {
    return await place.run({ outermost, depth: depth + 1 }, async () => {
      const result = await work();
      say(`done in ${seconds(performance.now() - start)}`);
      return result;
    });
  } catch (error) {
    if (error instanceof Error && !(error instanceof StepFailed)) {
      throw new StepFailed(name, error, performance.now() - start, log);
    }
    throw error;
  } finally {
    underWay -= depth === 0 ? 1 : 0;
  }
}

/** The failure of a named step; its message is all that a user needs. */
export class StepFailed extends Error {
  constructor(name: string, cause: Error, milliseconds: number, log?: string) {
    const file = (cause instanceof UserError || cause instanceof CommandError ? cause.log : undefined) ?? log;
    const lines = [`${name} failed after ${seconds(milliseconds)}: ${cause.message}`];
    if (file) {
      lines.push(`see ${file}`);
    }
    super(lines.join("\n"), { cause });
    this.name = "StepFailed";
  }
}
