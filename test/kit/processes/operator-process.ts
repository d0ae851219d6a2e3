import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../hack/lib/paths.ts";
import { startNode } from "./node.ts";

export interface OperatorProcessOptions {
  /** Kubeconfig that it uses. */
  kubeconfig: string;
  ledgerUrl: string;
  /** Name of its pod: a process with the leader's name takes the lease over immediately. */
  identity: string;
  /** Folder for its log, `<identity>.log`. */
  dir: string;
  /** More settings. */
  env?: Record<string, string>;
  /** Whether it is restarted when it has lost its lease and exited, as its pod's container would be. */
  restarts?: boolean;
}

/** What it logs as it ends because it could not renew its lease in time. */
const LEASE_LOST = "lost the lease; the process ends";

/** Characters of a log line that a failed test prints. */
const MAX_LINE = 300;

/** The operator as a process of its own, which a test may kill, freeze and restart. */
export class OperatorProcess {
  readonly #options: OperatorProcessOptions;
  #child: ChildProcess | undefined;
  #ending: ChildProcess | undefined;
  /** How often it was started. */
  starts = 0;
  /** See `OperatorProcessOptions`. */
  restarts: boolean;
  /** Its last output, each time that it exited for another reason than a lost lease. */
  readonly crashes: string[] = [];

  constructor(options: OperatorProcessOptions) {
    this.#options = options;
    this.restarts = options.restarts ?? false;
  }

  /** Compiles the operator once, so that starts after it take half the time: a killed process leaves nothing behind. */
  async warmUp(): Promise<void> {
    const env = { NODE_COMPILE_CACHE: join(this.#options.dir, "compile-cache") };
    // Without settings the operator exits immediately, before it loads what reads kubeconfigs.
    for (const script of ["operator/src/main.ts", "packages/controller-runtime/src/client/kube-config.ts"]) {
      const log = openSync(this.log, "a");
      const child = startNode(script, [], env, log);
      closeSync(log);
      await once(child, "exit");
    }
  }

  get log(): string {
    return join(this.#options.dir, `${this.#options.identity}.log`);
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get pid(): number {
    if (!this.isRunning || this.#child?.pid === undefined) {
      throw new Error("the operator does not run");
    }
    return this.#child.pid;
  }

  /** Starts it unless it runs; returns immediately. It ends with this process. */
  start(): void {
    if (this.isRunning) {
      return;
    }
    const { kubeconfig, ledgerUrl, identity, dir, env } = this.#options;
    const log = openSync(this.log, "a");
    this.starts += 1;
    const child = startNode(
      "operator/src/main.ts",
      [],
      {
        KUBECONFIG: kubeconfig,
        SLIPWAY_LEDGER_URL: ledgerUrl,
        SLIPWAY_CATALOG_FILE: join(root, "charts/slipway/files/catalog.yaml"),
        SLIPWAY_NAMESPACE: "slipway-system",
        SLIPWAY_EGRESS_DENIED_CIDRS: "10.0.0.0/8",
        SLIPWAY_INGRESS_ALLOW_LIST: "none",
        SLIPWAY_METRICS_PORT: "0",
        POD_NAME: identity,
        NODE_COMPILE_CACHE: join(dir, "compile-cache"),
        ...env,
      },
      log,
    );
    closeSync(log);
    this.#child = child;
    child.once("exit", (code, signal) => {
      if (this.#ending !== child) {
        this.#endedItself(`ended with ${signal ?? `exit code ${code}`}`);
      }
    });
  }

  /** kill -9; resolves once it has exited. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  /** Ends it in order. */
  stop(): Promise<void> {
    return this.#end("SIGTERM");
  }

  freeze(): void {
    process.kill(this.pid, "SIGSTOP");
  }

  thaw(): void {
    if (this.isRunning) {
      process.kill(this.pid, "SIGCONT");
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child || !this.isRunning) {
      return;
    }
    this.#ending = child;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }

  #endedItself(how: string): void {
    const lines = readFileSync(this.log, "utf8").trimEnd().split("\n");
    if (!lines.at(-1)?.includes(LEASE_LOST)) {
      // The last line first, and the rest of none so long that it hides the others.
      const last = lines.slice(-20).toReversed();
      this.crashes.push([how, ...last.map((line) => line.slice(0, MAX_LINE))].join("\n"));
    } else if (this.restarts) {
      this.start();
    }
  }
}
