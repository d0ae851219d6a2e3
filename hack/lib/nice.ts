/** Commands that leave the processors to others. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { controlGroupFolders, removeControlGroup } from "./control-group.ts";

/**
 * Linux gives every session an equal share of the processors, and `nice` counts within its session only: a session of its own is
 * made nice, too. https://man7.org/linux/man-pages/man7/sched.7.html, "The autogroup feature".
 */
const NICE = 'echo "$0" 2>/dev/null >/proc/self/autogroup; exec nice -n "$0" "$@"';

/**
 * What a command starts in sessions of their own is not nice to others. A control group that is idle holds those, too: of version 1,
 * or 2 where the controller of processors is on. Without the right to make one it is nice only.
 * https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files
 */
const IDLE_GROUP = "slipway-idle";
const IDLE = `for group in ${controlGroupFolders(IDLE_GROUP).join(" ")}; do
  mkdir -p $group && echo 1 >$group/cpu.idle && echo $$ >$group/cgroup.procs && break
done 2>/dev/null
${NICE}`;

/** How far a command stands back: 1 to 19, each step leaves four fifths of the share of processors, or it takes what nothing else needs. */
type Niceness = number | "idle";

/** Starts a command at a low priority, the lowest of a session by default; it gets the signals that end this process. */
export function spawnNice(
  command: string,
  args: readonly string[],
  { niceness = 19, ...options }: { niceness?: Niceness; cwd?: string; env?: NodeJS.ProcessEnv } = {},
): ChildProcessWithoutNullStreams {
  const [script, nice] = niceness === "idle" ? [IDLE, 19] : [NICE, niceness];
  const child = spawn("sh", ["-c", script, String(nice), command, ...args], { ...options, detached: true });
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
    void removeControlGroup(IDLE_GROUP);
  });
  return child;
}
