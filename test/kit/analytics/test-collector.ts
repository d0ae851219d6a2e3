import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { stringify } from "yaml";
import { freePorts } from "../../../hack/lib/ports.ts";
import { FakeApiserver } from "../apiserver/fake-apiserver.ts";

const main = fileURLToPath(new URL("../../../collector/src/main.ts", import.meta.url));

/** The collector as a process that can be killed and started again, beside an API server with one project, `p1` of `o1`. */
export class TestCollector {
  readonly podLogs: string;
  readonly #folder: string;
  readonly #api: FakeApiserver;
  readonly #client: KubeClient;
  readonly #ports: readonly number[];
  #child: ChildProcess | undefined;
  #log = "";

  private constructor(folder: string, api: FakeApiserver, ports: readonly number[]) {
    this.#folder = folder;
    this.podLogs = join(folder, "pod-logs");
    this.#api = api;
    this.#client = KubeClient.forUrl(api.url);
    this.#ports = ports;
  }

  static async open(): Promise<TestCollector> {
    const folder = await mkdtemp(join(tmpdir(), "collector-"));
    const collector = new TestCollector(folder, await FakeApiserver.start(), await freePorts(2));
    await collector.addProject("p1");
    const cluster = { server: collector.#api.url, "insecure-skip-tls-verify": true };
    const kubeconfig = {
      clusters: [{ name: "fake", cluster }],
      contexts: [{ name: "fake", context: { cluster: "fake", user: "fake" } }],
      users: [{ name: "fake" }],
      "current-context": "fake",
    };
    const text = stringify({ apiVersion: "v1", kind: "Config", ...kubeconfig });
    await writeFile(join(folder, "kubeconfig"), text);
    return collector;
  }

  /** Folder of its buffers. */
  get stateFolder(): string {
    return join(this.#folder, "state");
  }

  /** Makes the Service and the Ingress of a project of `o1`. */
  async addProject(name: string): Promise<void> {
    const labels = { "slipway.dev/organization": "o1", "slipway.dev/project": name };
    const metadata = { namespace: "slipway-org-o1", name, labels };
    const spec = { ports: [{ name: "http", port: 80 }] };
    await this.#client.create(resources.services, { metadata, spec } as never);
    await this.#client.create(resources.ingresses, { metadata, spec: {} } as never);
  }

  /** Makes a pod of a project of `o1`. @returns its folder among the pods' logs */
  async addPod(project: string, name: string, type = "http"): Promise<string> {
    const labels = {
      "slipway.dev/organization": "o1",
      "slipway.dev/project": project,
      "slipway.dev/type": type,
    };
    const metadata = { namespace: "slipway-org-o1", name, labels };
    const pod: KubernetesObject = { metadata };
    const created = await this.#client.create(resources.pods, pod);
    return `slipway-org-o1_${name}_${created.metadata?.uid}`;
  }

  async deletePod(name: string): Promise<void> {
    await this.#client.delete(resources.pods, { namespace: "slipway-org-o1", name });
  }

  /** Of the process that was started last, until it is killed. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** What it has written to its log. */
  get log(): string {
    return this.#log;
  }

  /** Address of its receiver. */
  get otlpUrl(): string {
    return `http://127.0.0.1:${this.#ports[1]}`;
  }

  /** @param env beside what it needs anyway: where its store is, for one */
  start(env: Record<string, string>): void {
    const all = {
      ...process.env,
      KUBECONFIG: join(this.#folder, "kubeconfig"),
      SLIPWAY_COLLECTOR_POD_LOGS: this.podLogs,
      SLIPWAY_COLLECTOR_STATE: this.stateFolder,
      SLIPWAY_COLLECTOR_OTLP_PORT: String(this.#ports[1]),
      SLIPWAY_METRICS_PORT: String(this.#ports[0]),
      SLIPWAY_LISTEN_ADDRESS: "127.0.0.1",
      ...env,
    };
    this.#child = spawn(process.execPath, [main], { env: all, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (part: Buffer) => {
        this.#log += String(part);
      });
    }
  }

  /** Resolves once it has ended. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    const process = this.#child;
    this.#child = undefined;
    if (!process || process.exitCode !== null || process.signalCode !== null) {
      return;
    }
    const ended = new Promise((resolve) => process.once("exit", resolve));
    process.kill(signal);
    await ended;
  }

  /** A figure of it, with its labels where it has some: `slipway_collector_lines_total`. @throws while it does not answer */
  async figure(name: string): Promise<number> {
    const text = await (await fetch(`http://127.0.0.1:${this.#ports[0]}/metrics`)).text();
    const line = text.split("\n").find((line) => line.startsWith(`${name} `));
    return Number(line?.slice(name.length + 1) ?? Number.NaN);
  }

  /** Whether it reads logs. */
  async isReady(): Promise<boolean> {
    const answer = await fetch(`http://127.0.0.1:${this.#ports[0]}/readyz`).catch(() => undefined);
    return answer?.ok ?? false;
  }

  async close(): Promise<void> {
    await this.kill("SIGKILL");
    await this.#client.close();
    await this.#api.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/**
 * A request to `p1` as Traefik logs it, with as much in it that is unlike all others as real ones have. Its number identifies it,
 * also as the bytes of its answer.
 */
export function traefikLine(number: number, at = Date.now()): string {
  const hash = createHash("md5").update(String(number));
  const bytes = hash.digest();
  const hex = bytes.toString("hex");
  const uuid = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join(
    "-",
  );
  const version = `${80 + ((bytes[0] ?? 0) % 60)}.0.${bytes.readUInt16LE(2) % 7_000}.${bytes[1]}`;
  return JSON.stringify({
    ClientAddr: `${bytes.subarray(4, 8).join(".")}:1`,
    DownstreamContentSize: number,
    DownstreamStatus: number % 50 === 0 ? 404 : 200,
    Duration: bytes.readUInt32LE(8),
    RequestContentSize: bytes.readUInt16LE(12),
    RequestMethod: "GET",
    RequestPath: `/orders/${uuid}/items/${number}?secret=${number}`,
    RouterName: "websecure-slipway-org-o1-p1-shop-apps-localhost@kubernetes",
    ServiceName: "slipway-org-o1-p1-http@kubernetes",
    StartUTC: new Date(at).toISOString(),
    entryPointName: "websecure",
    "request_User-Agent": `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version} Safari/537.36`,
  });
}
