import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { answers } from "../lib/exec.ts";
import { freePorts } from "../lib/ports.ts";
import { GiveUp, waitFor } from "../lib/wait.ts";
import { recordPermissions } from "../testing/platform-calls.ts";
import { ensureBinary } from "./binaries.ts";
import { ensureAuthority, ensureCertificate, ensureSigningKey, type KeyPair } from "./certificates.ts";
import { type Argv, apiserverArgs, auditPolicy, etcdArgs } from "./control-plane.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { goEnvironment } from "./processes.ts";

/** A kube-apiserver for tests. */
export interface TestApiserver {
  /** `https://127.0.0.1:PORT`; stays the same over `restart()`. */
  url: string;
  /** Path of an admin kubeconfig (group system:masters). */
  kubeconfig: string;
  /** Temporary folder with data and logs (`etcd.log`, `kube-apiserver.log`); deleted by `stop()`. */
  dir: string;
  /** Path of the multi-call binary: `run(binary, ["kubectl", ...])`. */
  binary: string;
  /** Audit log: one JSON line per answered request, two of a watch. */
  auditLog: string;
  /** Its etcd: where it listens, and the files that a client needs. */
  etcd: { url: string; authority: string; client: KeyPair };
  /** The processes as they are now, by component. */
  pids(): Record<string, number>;
  /** Ends kube-apiserver in order and starts it on the same port and data; resolves when it is ready. */
  restart(): Promise<void>;
  /** SIGKILL of kube-apiserver; etcd keeps running. `restart()` starts it again. */
  kill(): Promise<void>;
  /** Ends both and removes the folder. */
  stop(): Promise<void>;
}

/** Who all requests of tests are made by, impersonated or not. */
const ADMIN = "admin";

export interface TestApiserverOptions {
  /** More flags for kube-apiserver. */
  flags?: Record<string, string | number | boolean>;
}

/**
 * Starts etcd and kube-apiserver, and nothing else, on free ports of 127.0.0.1: a real API with
 * validation, CEL, watch and RBAC, without controllers. So no pod starts, nothing is garbage collected, and a deleted
 * namespace stays Terminating: use a new namespace per test. Takes about 5 s; share one per test file.
 *
 *     let api: TestApiserver;
 *     beforeAll(async () => { api = await startApiserver(); });
 *     afterAll(() => api.stop());
 *
 * Runs the programs of the folder that `KUBEBUILDER_ASSETS` names, as envtest does; without it, builds the binary when the
 * cache does not have it (minutes on a bare machine). Both processes end with this one, however it ends.
 */
export async function startApiserver(options: TestApiserverOptions = {}): Promise<TestApiserver> {
  const dir = await mkdtemp(join(tmpdir(), "slipway-apiserver-"));
  const binary = await multiCallBinary(dir);
  const [port, clientPort, peerPort] = await freePorts(3);
  if (!port || !clientPort || !peerPort) {
    throw new Error("no free ports");
  }
  const authority = await ensureAuthority(dir, "test-ca");
  const altNames = ["IP:127.0.0.1", "DNS:localhost", "DNS:kubernetes.default.svc"];
  const server = await ensureCertificate(dir, "server", authority, { commonName: "server", altNames });
  const admin = await ensureCertificate(dir, "admin", authority, {
    commonName: ADMIN,
    organizations: ["system:masters"],
  });
  const url = `https://127.0.0.1:${port}`;
  const kubeconfig = join(dir, "kubeconfig");
  await writeKubeconfig(kubeconfig, "test", url, authority.cert, admin);
  const auditPolicyFile = join(dir, "audit-policy.yaml");
  const auditLog = join(dir, "audit.log");
  await writeFile(auditPolicyFile, stringify(auditPolicy([ADMIN])));

  const etcd = start(binary, dir, [
    ...etcdArgs({
      dataDir: join(dir, "etcd"),
      clientPort,
      peerPort,
      unsafe: true,
      authority: authority.cert,
      server,
    }),
  ]);
  const args = apiserverArgs({
    port,
    bindAddress: "127.0.0.1",
    etcdPort: clientPort,
    authority: authority.cert,
    server,
    etcdClient: admin,
    serviceAccountKeys: await ensureSigningKey(dir, "service-account"),
    serviceCidr: "10.96.0.0/16",
    auditPolicy: auditPolicyFile,
    auditLog,
    // Without the controller that makes them, no pod would have its service account.
    extra: {
      "disable-admission-plugins": "ServiceAccount",
      "shutdown-delay-duration": "0s",
      // What is read of the log is all of it.
      "audit-log-maxsize": 10_000,
      ...options.flags,
    },
  });
  let apiserver: ChildProcess | undefined;

  const up = async () => {
    const child = start(binary, dir, args);
    apiserver = child;
    await waitFor("kube-apiserver", 150_000, async () => {
      if (child.exitCode !== null) {
        throw new GiveUp(`ended with code ${child.exitCode}`);
      }
      return answers(`${url}/readyz`);
    });
  };
  const stop = async () => {
    await end(apiserver, "SIGKILL");
    await end(etcd, "SIGKILL");
    await recordPermissions(auditLog);
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    await up();
  } catch (error) {
    const log = await readFile(join(dir, "kube-apiserver.log"), "utf8").catch(() => "");
    await stop();
    throw new Error(`${(error as Error).message}\n${log.split("\n").slice(-15).join("\n")}`);
  }
  return {
    url,
    kubeconfig,
    dir,
    binary,
    auditLog,
    etcd: { url: `https://127.0.0.1:${clientPort}`, authority: authority.cert, client: admin },
    pids: () => ({ "kube-apiserver": apiserver?.pid ?? 0, etcd: etcd.pid ?? 0 }),
    restart: async () => {
      await end(apiserver, "SIGTERM");
      await up();
    },
    kill: () => end(apiserver, "SIGKILL"),
    stop,
  };
}

/** The embedded cluster's binary, or a script that runs what `KUBEBUILDER_ASSETS` has under its name: etcd, kube-apiserver, kubectl. */
async function multiCallBinary(dir: string): Promise<string> {
  const assets = process.env.KUBEBUILDER_ASSETS;
  if (!assets) {
    return ensureBinary("kubernetes");
  }
  const script = join(dir, "kubernetes");
  await writeFile(script, '#!/bin/sh\nprogram=$1\nshift\nexec "$KUBEBUILDER_ASSETS/$program" "$@"\n', {
    mode: 0o700,
  });
  return script;
}

/** Ends a component; it is killed when it takes more than 10 s. Nothing happens when it has ended. */
export async function end(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const exited = once(child, "exit");
  child.kill(signal);
  const limit = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await exited;
  clearTimeout(limit);
}

/**
 * Starts a component that the kernel kills when this process ends; it writes `<dir>/<its name>.log`.
 * @param argv its name and its flags
 * @param skip words that are not for the command line: 1 when the binary is the component alone
 * @param env added to its environment
 */
export function start(
  binary: string,
  dir: string,
  argv: Argv,
  skip = 0,
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  const log = openSync(join(dir, `${argv[0]}.log`), "a");
  const child = spawn("setpriv", ["--pdeathsig", "KILL", binary, ...argv.slice(skip)], {
    env: { ...goEnvironment, ...process.env, ...env },
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  return child;
}
