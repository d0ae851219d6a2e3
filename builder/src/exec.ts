/** Runs programs of a step: streams their output, and makes sure that they end. */

import { spawn } from "node:child_process";
import { once } from "node:events";

export interface Options {
  cwd?: string;
  /** The whole environment: the runner's own is not inherited. */
  env: Record<string, string>;
  /** Called with each chunk of output, of both streams unless `onStdout` receives the first. */
  onOutput?(chunk: Buffer): void;
  onStdout?(chunk: Buffer): void;
  /** Milliseconds after which it is stopped. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Largest file that it may write, in bytes. */
  maxFileBytes?: number;
}

export interface ExitResult {
  /** Exit code, or 128 and the signal's number as a shell has it. */
  code: number;
  timedOut: boolean;
  /** End of both streams, at most 64 KiB. */
  text: string;
}

const TAIL_BYTES = 64 * 1024;
/** After SIGTERM a program is killed when so long has passed. */
const GRACE_MS = 5_000;
const SIGNALS: Partial<Record<NodeJS.Signals, number>> = {
  SIGKILL: 137,
  SIGTERM: 143,
  SIGXFSZ: 153,
  SIGINT: 130,
};

/**
 * Runs a program and its children to their end: they are one process group, and are stopped together.
 * @throws Error when it cannot be started
 */
export async function run(program: string, args: readonly string[], options: Options): Promise<ExitResult> {
  const { onOutput, onStdout, timeoutMs, signal, maxFileBytes } = options;
  const [file, words] =
    maxFileBytes === undefined
      ? [program, args]
      : // In blocks of 512 bytes: what a shell's ulimit counts in.
        [
          "/bin/sh",
          ["-c", 'ulimit -f "$0" && exec "$@"', String(Math.ceil(maxFileBytes / 512)), program, ...args],
        ];
  const child = spawn(file, words, {
    cwd: options.cwd,
    env: options.env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const tail = new Tail();
  child.stdout.on("data", (chunk: Buffer) => {
    if (onStdout === undefined) {
      tail.push(chunk);
    }
    (onStdout ?? onOutput)?.(chunk);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    tail.push(chunk);
    onOutput?.(chunk);
  });
  let timedOut = false;
  let force: NodeJS.Timeout | undefined;
  const end = (): void => {
    signalGroup(child.pid, "SIGTERM");
    force ??= setTimeout(() => signalGroup(child.pid, "SIGKILL"), GRACE_MS);
  };
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          timedOut = true;
          end();
        }, timeoutMs);
  signal?.addEventListener("abort", end, { once: true });
  if (signal?.aborted) {
    end();
  }
  try {
    const [code, killed] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
    return { code: code ?? SIGNALS[killed ?? "SIGKILL"] ?? 128, timedOut, text: tail.text };
  } finally {
    clearTimeout(timer);
    clearTimeout(force);
    signal?.removeEventListener("abort", end);
    // Remaining children would keep files and ports open.
    signalGroup(child.pid, "SIGKILL");
  }
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) {
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch {
    // It has exited.
  }
}

/** The last bytes of a stream. */
class Tail {
  #chunks: Buffer[] = [];
  #bytes = 0;

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes - (this.#chunks[0]?.length ?? 0) >= TAIL_BYTES) {
      this.#bytes -= this.#chunks.shift()?.length ?? 0;
    }
  }

  get text(): string {
    return Buffer.concat(this.#chunks).subarray(-TAIL_BYTES).toString("utf8");
  }
}
