import { spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { joinControlGroup } from "../lib/control-group.ts";
import { contentHash } from "../lib/hash.ts";
import { logDir, runDir } from "../lib/paths.ts";
import { UserError } from "../lib/steps.ts";
import { GiveUp, waitFor } from "../lib/wait.ts";

/** A daemon of the embedded cluster. */
export interface Daemon {
  name: string;
  argv: string[];
  /** Files whose content it reads at start: when one changes, it is restarted. */
  reads?: string[];
  /** Resolves to true when it does its work. */
  healthy: () => Promise<boolean>;
  timeoutMs?: number;
}

interface PidFile {
  pid: number;
  /** Clock ticks after boot at which it started: distinguishes it from a later process with the same pid. */
  startTime: string;
  hash: string;
}

/** Where pid files and logs are; elsewhere in tests only. */
export interface DaemonDirs {
  run: string;
  logs: string;
}

/**
 * All daemons, and what they start but pods, share as much of the processors as all pods do. Each session has as much as half of the pods
 * on two processors otherwise, and containerd starts one for each pod: pods came last.
 */
export const SYSTEM_GROUP = "slipway";
const SYSTEM_SHARES = 1_024 * availableParallelism();

const machine: DaemonDirs = { run: runDir, logs: logDir };
const pidFile = (name: string, dirs: DaemonDirs) => join(dirs.run, `${name}.pid`);
/**
 * Garbage is collected when the heap has grown to five times what was in use, and not to twice, up to 1 GiB a process: nearly half of the
 * processor time of kube-apiserver under the end-to-end tests was collecting garbage of a small heap.
 * @see https://pkg.go.dev/runtime#hdr-Environment_Variables
 */
export const goEnvironment = { GOGC: "400", GOMEMLIMIT: "1GiB" } as const;
const environment = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
  LANG: "C.UTF-8",
  ...goEnvironment,
};
/** Handed on, since containerd pulls through them where the machine needs a proxy. */
const passedOn = [
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "http_proxy",
  "https_proxy",
  "no_proxy",
  "SSL_CERT_FILE",
];

/** The start time in a line of /proc/PID/stat; undefined for a zombie. The command's name may contain spaces. */
export function parseStartTime(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

/** When a process started, in clock ticks after boot; undefined when it does not run. */
export function startTime(pid: number): string | undefined {
  try {
    return parseStartTime(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return undefined;
  }
}

function running(name: string, dirs: DaemonDirs): PidFile | undefined {
  try {
    const file = JSON.parse(readFileSync(pidFile(name, dirs), "utf8")) as PidFile;
    return startTime(file.pid) === file.startTime ? file : undefined;
  } catch {
    return undefined;
  }
}

/** Names of the daemons that have a pid file, running or not. */
export function knownDaemons(folder = runDir): string[] {
  try {
    return readdirSync(folder)
      .filter((file) => file.endsWith(".pid"))
      .map((file) => file.slice(0, -4));
  } catch {
    return [];
  }
}

/** Whether the daemon that this machine's stack started under `name` is alive. */
export const isRunning = (name: string, dirs = machine): boolean => running(name, dirs) !== undefined;

/**
 * Sees to it that a daemon runs with this command line and these files: leaves it alone when it does,
 * restarts it when they changed, starts it when it is dead; then waits until it is healthy.
 * @returns what was done
 */
export async function ensureDaemon(
  daemon: Daemon,
  dirs = machine,
): Promise<"kept" | "started" | "restarted"> {
  const hash = contentHash([...daemon.argv, ...(daemon.reads ?? []).map((file) => readFileSync(file))]);
  const current = running(daemon.name, dirs);
  const log = join(dirs.logs, `${daemon.name}.log`);
  let did: "kept" | "started" | "restarted" = "kept";
  if (current?.hash !== hash) {
    did = current ? "restarted" : "started";
    await stopDaemon(daemon.name, undefined, dirs);
    await start(daemon, hash, log, dirs);
  }
  await waitFor(daemon.name, daemon.timeoutMs ?? 60_000, async () => {
    if (!running(daemon.name, dirs)) {
      throw new GiveUp("it ended");
    }
    return daemon.healthy();
  }).catch((error: Error) => {
    throw new UserError(`${error.message}; run hack/up.sh again once the cause in its log is removed`, log);
  });
  return did;
}

async function start(daemon: Daemon, hash: string, log: string, dirs: DaemonDirs): Promise<void> {
  const [command, ...args] = daemon.argv;
  if (!command) {
    throw new Error(`${daemon.name} has no command`);
  }
  await mkdir(dirs.run, { recursive: true, mode: 0o755 });
  await rotate(log);
  const out = openSync(log, "a", 0o600);
  const env: Record<string, string> = { ...environment };
  for (const name of passedOn) {
    if (process.env[name]) {
      env[name] = process.env[name];
    }
  }
  const child = spawn(command, args, { detached: true, cwd: "/", stdio: ["ignore", out, out], env });
  closeSync(out);
  const failed = new Promise<never>((_, reject) => child.on("error", reject));
  await Promise.race([new Promise((resolve) => child.on("spawn", resolve)), failed]);
  child.unref();
  if (child.pid !== undefined && dirs === machine) {
    await joinControlGroup(SYSTEM_GROUP, SYSTEM_SHARES, child.pid);
  }
  const started = child.pid === undefined ? undefined : startTime(child.pid);
  if (child.pid === undefined || !started) {
    throw new UserError(`${daemon.name} ended immediately`, log);
  }
  await writeFile(pidFile(daemon.name, dirs), JSON.stringify({ pid: child.pid, startTime: started, hash }));
}

const longestLog = 50 * 1024 * 1024;

/** Moves a long log aside when its daemon starts again; one older one is kept. */
async function rotate(log: string): Promise<void> {
  const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
  if (size > longestLog) {
    await rename(log, `${log}.1`);
  }
}

/** Ends a daemon: SIGTERM, and SIGKILL after `graceMs`. Nothing happens when it does not run. */
export async function stopDaemon(name: string, graceMs = 15_000, dirs = machine): Promise<boolean> {
  const file = running(name, dirs);
  if (file) {
    signal(file.pid, "SIGTERM");
    const end = performance.now() + graceMs;
    while (startTime(file.pid) === file.startTime) {
      if (performance.now() > end) {
        signal(file.pid, "SIGKILL");
      }
      await sleep(50);
    }
  }
  await rm(pidFile(name, dirs), { force: true });
  return file !== undefined;
}

/** Sends a signal; a process that has just ended is none to fail on. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") {
      throw error;
    }
  }
}
