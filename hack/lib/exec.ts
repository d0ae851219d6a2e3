import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";

export interface RunOptions {
  cwd?: string;
  /** Added to this process's environment; an `undefined` value removes a variable. */
  env?: Record<string, string | undefined>;
  /** Written to the command's standard input. */
  input?: string | Buffer;
  /** File that receives both output streams as well. */
  log?: string;
  timeoutMs?: number;
}

/** A command that could not start, ended with a code other than 0, or ran out of time. */
export class CommandError extends Error {
  readonly code: number | null;
  readonly stderr: string;
  readonly log: string | undefined;

  constructor(command: string, code: number | null, stderr: string, log?: string) {
    const tail = stderr.trim().split("\n").slice(-5).join("\n");
    super(
      `${command} ${code === null ? "did not finish" : `ended with code ${code}`}${tail ? `: ${tail}` : ""}`,
    );
    this.name = "CommandError";
    this.code = code;
    this.stderr = stderr;
    this.log = log;
  }
}

/**
 * Runs a command to its end and returns its standard output.
 * @throws CommandError when it does not end with code 0
 */
export async function run(command: string, args: string[], options: RunOptions = {}): Promise<string> {
  const log = options.log ? createWriteStream(options.log, { flags: "a", mode: 0o600 }) : undefined;
  log?.write(`\n$ ${[command, ...args].join(" ")}\n`);
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    timeout: options.timeoutMs,
  });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => {
    out.push(chunk);
    log?.write(chunk);
  });
  child.stderr?.on("data", (chunk: Buffer) => {
    err.push(chunk);
    log?.write(chunk);
  });
  if (options.input !== undefined) {
    // A command that ends early closes its input; its exit code explains more than EPIPE.
    child.stdin?.on("error", () => {});
    child.stdin?.end(options.input);
  }
  const code = await new Promise<number | null>((resolve) => {
    child.on("error", (error) => {
      err.push(Buffer.from(error.message));
      resolve(null);
    });
    child.on("close", resolve);
  });
  if (log) {
    log.end();
    await finished(log);
  }
  const stderr = Buffer.concat(err).toString();
  if (code !== 0) {
    throw new CommandError([command, ...args.slice(0, 3)].join(" "), code, stderr, options.log);
  }
  return Buffer.concat(out).toString();
}

/** Whether a command ends with code 0. */
export async function succeeds(command: string, args: string[], options: RunOptions = {}): Promise<boolean> {
  try {
    await run(command, args, options);
    return true;
  } catch (error) {
    if (error instanceof CommandError) {
      return false;
    }
    throw error;
  }
}

/** Whether an address of this machine answers 2xx to a GET within 2 s, with any certificate. */
export const answers = (url: string): Promise<boolean> =>
  succeeds("curl", ["-sfk", "--max-time", "2", "-o", "/dev/null", url]);
