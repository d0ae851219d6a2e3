import type { ChildProcess } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run, succeeds } from "../lib/exec.ts";
import { freePorts } from "../lib/ports.ts";
import { GiveUp, waitFor } from "../lib/wait.ts";
import { end, start, startApiserver, type TestApiserver, type TestApiserverOptions } from "./apiserver.ts";
import { ensureBinary } from "./binaries.ts";
import { ensureAuthority, ensureCertificate, ensureSigningKey } from "./certificates.ts";
import {
  type Argv,
  controllerManagerArgs,
  controllerManagerLimits,
  flags,
  schedulerArgs,
} from "./control-plane.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { kwokConfig } from "./kwok-config.ts";

/** Controllers that run unless a test names others: all that the life of a CronJob's pods needs. */
export const testControllers = [
  "cronjob-controller",
  "job-controller",
  "garbage-collector-controller",
  "namespace-controller",
  "pod-garbage-collector-controller",
  "resourcequota-controller",
] as const;

/** How fast the controller-manager may be: as Kubernetes has it, twice that, or as the embedded cluster does. */
export const controllerLimits = {
  default: {},
  doubled: { "kube-api-qps": 40, "kube-api-burst": 60 },
  raised: controllerManagerLimits,
} as const;

export interface TestClusterOptions extends TestApiserverOptions {
  controllers?: readonly string[];
  limits?: keyof typeof controllerLimits;
  /** Fake nodes, `node-0` on. */
  nodes?: number;
  /** What `pods/log` of every container answers. */
  log?: string;
  /** Whether `pods/exec` runs its command, on this machine and as this user, with the kubelet's own streaming server. */
  runsCommands?: boolean;
}

/** A process of a test cluster, which a test may freeze, end and start again. */
export interface TestProcess {
  readonly pid: number;
  /** Ends it, with SIGTERM by default. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again with other flags in place of those of the same name; resolves when it is healthy. */
  restart(extra?: Record<string, string | number | boolean>): Promise<void>;
}

/** A kube-apiserver with controllers, a scheduler, and nodes whose pods live as the words in their args say (`Script`). */
export interface TestCluster extends TestApiserver {
  controllerManager: TestProcess;
  scheduler: TestProcess;
  kwok: TestProcess;
}

/**
 * Starts a control plane with fake nodes on free ports of 127.0.0.1, beside whatever else runs on the machine; takes
 * about 10 s. Pods are scheduled and get their statuses as a kubelet would write them, but no container runs: see `Script` for
 * how a pod's arguments choose its statuses. The nodes stay Ready until a test changes them: no controller monitors them. Every process
 * ends with this one, however it ends.
 */
export async function startTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const kwokBinary = await ensureBinary("kwok");
  const api = await startApiserver({
    ...options,
    flags: {
      // Nothing creates service accounts for pods, and nothing removes the taint that new nodes would get.
      "disable-admission-plugins": "ServiceAccount,TaintNodesByCondition",
      "kubelet-preferred-address-types": "InternalIP",
      ...options.flags,
    },
  });
  const started: TestProcess[] = [];
  const stop = async () => {
    await Promise.all(started.map((process) => process.stop("SIGKILL")));
    await api.stop();
  };
  try {
    const authority = await ensureAuthority(api.dir, "test-ca");
    const server = { cert: join(api.dir, "server.crt"), key: join(api.dir, "server.key") };
    const kubeconfig = async (component: string, organizations: string[] = []) => {
      const commonName = `system:${component}`;
      const client = await ensureCertificate(api.dir, component, authority, { commonName, organizations });
      const path = join(api.dir, `${component}.kubeconfig`);
      await writeKubeconfig(path, component, api.url, authority.cert, client);
      return path;
    };
    const [managerPort, schedulerPort, kubeletPort] = await freePorts(3);
    if (!managerPort || !schedulerPort || !kubeletPort) {
      throw new Error("no free ports");
    }
    const serving = { "tls-cert-file": server.cert, "tls-private-key-file": server.key };

    await addNodes(api, options.nodes ?? 3, kubeletPort);
    const log = join(api.dir, "container.log");
    await writeFile(log, options.log ?? "2024-01-01T00:00:00.000000000Z stdout F a line\n");
    await writeFile(join(api.dir, "kwok.yaml"), kwokConfig(log, options.runsCommands));
    const launch = async (binary: string, argv: Argv, port: number) => {
      const process = await launchProcess(api.dir, binary, argv, port);
      started.push(process);
      return process;
    };
    const managerKubeconfig = await kubeconfig("kube-controller-manager");
    const schedulerKubeconfig = await kubeconfig("kube-scheduler");
    const kwokKubeconfig = await kubeconfig("kwok", ["system:masters"]);
    const signing = await ensureSigningKey(api.dir, "service-account");
    const [controllerManager, scheduler, kwok] = await Promise.all([
      launch(
        api.binary,
        controllerManagerArgs({
          kubeconfig: managerKubeconfig,
          authority,
          serviceAccountKey: signing.key,
          extra: {
            ...serving,
            "secure-port": managerPort,
            controllers: (options.controllers ?? testControllers).join(","),
            ...controllerLimits[options.limits ?? "default"],
          },
        }),
        managerPort,
      ),
      launch(
        api.binary,
        schedulerArgs(schedulerKubeconfig, { ...serving, "secure-port": schedulerPort }),
        schedulerPort,
      ),
      launch(
        kwokBinary,
        [
          "kwok",
          ...flags({
            kubeconfig: kwokKubeconfig,
            config: join(api.dir, "kwok.yaml"),
            "manage-all-nodes": true,
            "node-ip": "127.0.0.1",
            "node-port": kubeletPort,
            "server-address": `127.0.0.1:${kubeletPort}`,
            ...serving,
          }),
        ],
        kubeletPort,
      ),
    ]);
    const pids = () => ({
      ...api.pids(),
      "kube-controller-manager": controllerManager.pid,
      "kube-scheduler": scheduler.pid,
      "fake nodes": kwok.pid,
    });
    return { ...api, pids, controllerManager, scheduler, kwok, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts one component and waits until its `/healthz` answers. */
async function launchProcess(dir: string, binary: string, argv: Argv, port: number): Promise<TestProcess> {
  let child: ChildProcess;
  const up = async (args: Argv) => {
    // kwok is no multi-call binary: its name is no word of its command line.
    child = start(binary, dir, args, binary.endsWith("/kwok") ? 1 : 0);
    await waitFor(String(args[0]), 150_000, async () => {
      if (child.exitCode !== null) {
        throw new GiveUp(await lastLines(dir, String(args[0])));
      }
      const url = `https://127.0.0.1:${port}/healthz`;
      return succeeds("curl", ["-sfk", "--max-time", "2", "-o", "/dev/null", url]);
    });
  };
  await up(argv);
  return {
    get pid() {
      return child.pid ?? 0;
    },
    stop: (signal = "SIGTERM") => {
      // A frozen process does not handle SIGTERM.
      child.kill("SIGCONT");
      return end(child, signal);
    },
    restart: async (extra = {}) => {
      await end(child, "SIGKILL");
      const kept = argv.filter((arg) => !Object.keys(extra).some((name) => arg.startsWith(`--${name}=`)));
      await up([...kept, ...flags(extra)]);
    },
  };
}

async function lastLines(dir: string, name: string): Promise<string> {
  const log = await readFile(join(dir, `${name}.log`), "utf8").catch(() => "");
  return `ended\n${log.split("\n").slice(-15).join("\n")}`;
}

/** Makes the nodes as their kubelets would, Ready and with room for all pods of a test. */
async function addNodes(api: TestApiserver, count: number, kubeletPort: number): Promise<void> {
  const now = new Date().toISOString();
  const room = { cpu: "1k", memory: "4Ti", "ephemeral-storage": "4Ti", pods: "20k" };
  const conditions = [
    ["Ready", "True", "KubeletReady"],
    ["MemoryPressure", "False", "KubeletHasSufficientMemory"],
    ["DiskPressure", "False", "KubeletHasNoDiskPressure"],
    ["PIDPressure", "False", "KubeletHasSufficientPID"],
  ].map(([type, status, reason]) => ({
    type,
    status,
    reason,
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  }));
  const items = Array.from({ length: count }, (_, index) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: `node-${index}`, labels: { "kubernetes.io/hostname": `node-${index}` } },
    status: {
      phase: "Running",
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
      capacity: room,
      allocatable: room,
      conditions,
      nodeInfo: {
        architecture: "amd64",
        bootID: "",
        containerRuntimeVersion: "kwok",
        kernelVersion: "kwok",
        kubeProxyVersion: "",
        kubeletVersion: "kwok",
        machineID: "",
        operatingSystem: "linux",
        osImage: "",
        systemUUID: "",
      },
    },
  }));
  await run(api.binary, ["kubectl", "--kubeconfig", api.kubeconfig, "create", "-f", "-"], {
    input: JSON.stringify({ apiVersion: "v1", kind: "List", items }),
  });
}
