import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../../hack/lib/ports.ts";
import { TestCollector } from "../kit/analytics/test-collector.ts";

/** A collector as a process that is killed and started again. */
export interface CollectorProcess {
  /** The kubelet's folder of pods' logs. */
  readonly podLogs: string;
  readonly pid: number | undefined;
  start(): void;
  /** Resolves once it has ended. */
  kill(signal: NodeJS.Signals): Promise<void>;
  close(): Promise<void>;
}

/** Slipway's, which attributes all requests to one project. */
export async function slipwayCollector(sinkUrl: string): Promise<CollectorProcess> {
  const collector = await TestCollector.open();
  return {
    podLogs: collector.podLogs,
    get pid() {
      return collector.pid;
    },
    start: () => collector.start({ SLIPWAY_ANALYTICS_URL: sinkUrl }),
    kill: (signal) => collector.kill(signal),
    async close() {
      if (process.env.SLIPWAY_BENCH_VERBOSE === "1") {
        console.error(collector.log);
      }
      await collector.close();
    },
  };
}

/**
 * Another one, by the shell command that starts it: it reads the container's logs below `$POD_LOGS`, keeps its state in `$STATE` and
 * sends to `$SINK_URL`; `$METRICS_PORT` is a free port.
 */
export async function otherCollector(command: string, sinkUrl: string): Promise<CollectorProcess> {
  const folder = await mkdtemp(join(tmpdir(), "collector-"));
  const [port] = await freePorts(1);
  const env = {
    ...process.env,
    POD_LOGS: join(folder, "pod-logs"),
    STATE: join(folder, "state"),
    SINK_URL: sinkUrl,
    METRICS_PORT: String(port),
  };
  await Promise.all([mkdir(env.POD_LOGS), mkdir(env.STATE)]);
  let child: ChildProcess | undefined;
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = child;
    child = undefined;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) {
      return;
    }
    const ended = new Promise((resolve) => ending.once("exit", resolve));
    ending.kill(signal);
    await ended;
  };
  return {
    podLogs: env.POD_LOGS,
    get pid() {
      return child?.pid;
    },
    start() {
      const stdio = process.env.SLIPWAY_BENCH_VERBOSE === "1" ? "inherit" : "ignore";
      child = spawn("sh", ["-c", `exec ${command}`], { env, stdio });
    },
    kill,
    async close() {
      await kill("SIGKILL");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Most resident memory that a process had so far, in MiB; 0 when it has ended. */
export function peakMiB(pid: number | undefined): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** Seconds of a processor that ended children of this process have used: those of a killed one, too. */
export function childrenCpuSeconds(): number {
  const [, fields = ""] = readFileSync("/proc/self/stat", "utf8").split(") ");
  const [user, system] = fields.split(" ").slice(13, 15);
  return (Number(user) + Number(system)) / 100;
}
