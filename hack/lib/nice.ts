/** Commands that leave the processors to others. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";

/**
 * Linux gives every session an equal share of the processors, and `nice` counts within its session only: a session of its own is
 * made nice, too. https://man7.org/linux/man-pages/man7/sched.7.html, "The autogroup feature".
 */
const NICE = 'echo "$0" 2>/dev/null >/proc/self/autogroup; exec nice -n "$0" "$@"';

/**
 * Starts a command at a low priority, the lowest by default; it gets the signals that end this process.
 * @param options.niceness 1 to 19; each step leaves four fifths of the share of processors
 */
export function spawnNice(
  command: string,
  args: readonly string[],
  { niceness = 19, ...options }: { niceness?: number; cwd?: string; env?: NodeJS.ProcessEnv } = {},
): ChildProcessWithoutNullStreams {
  const child = spawn("sh", ["-c", NICE, String(niceness), command, ...args], { ...options, detached: true });
  const end = (signal: NodeJS.Signals): void => {
    child.kill(signal);
    process.kill(process.pid, signal);
  };
  const signals: NodeJS.Signals[] = ["SIGHUP", "SIGINT", "SIGTERM"];
  for (const signal of signals) {
    process.once(signal, end);
  }
  child.once("close", () => {
    for (const signal of signals) {
      process.off(signal, end);
    }
  });
  return child;
}
