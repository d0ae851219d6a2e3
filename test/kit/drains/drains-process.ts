import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { customResource, KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { GROUP, type LogDrain, type LogDrainSpec, plurals, VERSION } from "@slipway/crds";
import { stringify } from "yaml";
import { freePorts } from "../../../hack/lib/ports.ts";
import { FakeApiserver } from "../apiserver/fake-apiserver.ts";

const main = fileURLToPath(new URL("../../../collector/src/drains/main.ts", import.meta.url));
const drains = customResource(GROUP, VERSION, plurals.LogDrain, "LogDrain");
const projects = customResource(GROUP, VERSION, plurals.Project, "Project");

/** The process that delivers log drains, which can be killed and started again, beside an API server. */
export class DrainsProcess {
  readonly api: FakeApiserver;
  readonly #folder: string;
  readonly #client: KubeClient;
  readonly #port: number;
  #child: ChildProcess | undefined;
  log = "";

  private constructor(folder: string, api: FakeApiserver, port: number) {
    this.#folder = folder;
    this.api = api;
    this.#client = KubeClient.forUrl(api.url);
    this.#port = port;
  }

  static async open(): Promise<DrainsProcess> {
    const folder = await mkdtemp(join(tmpdir(), "drains-"));
    const [port = 0] = await freePorts(1);
    const opened = new DrainsProcess(folder, await FakeApiserver.start(), port);
    const kubeconfig = {
      clusters: [{ name: "fake", cluster: { server: opened.api.url, "insecure-skip-tls-verify": true } }],
      contexts: [{ name: "fake", context: { cluster: "fake", user: "fake" } }],
      users: [{ name: "fake" }],
      "current-context": "fake",
    };
    await writeFile(
      join(folder, "kubeconfig"),
      stringify({ apiVersion: "v1", kind: "Config", ...kubeconfig }),
    );
    return opened;
  }

  async addProject(organization: string, name: string, title: string): Promise<void> {
    const metadata = { namespace: `slipway-org-${organization}`, name };
    await this.#client.create<KubernetesObject>(projects, { metadata, spec: { name: title } } as never);
  }

  async addSecret(organization: string, name: string, values: Record<string, string>): Promise<void> {
    const data = Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    );
    await this.#client.create(resources.secrets, {
      metadata: { namespace: `slipway-org-${organization}`, name },
      data,
    } as never);
  }

  addDrain(organization: string, name: string, spec: LogDrainSpec): Promise<KubernetesObject> {
    const metadata = { namespace: `slipway-org-${organization}`, name };
    return this.#client.create<KubernetesObject>(drains, { metadata, spec } as never);
  }

  drain(organization: string, name: string): Promise<LogDrain> {
    const ref = { namespace: `slipway-org-${organization}`, name };
    return this.#client.get<KubernetesObject>(drains, ref) as Promise<unknown> as Promise<LogDrain>;
  }

  start(env: Record<string, string>): void {
    const all = {
      ...process.env,
      KUBECONFIG: join(this.#folder, "kubeconfig"),
      SLIPWAY_METRICS_PORT: String(this.#port),
      SLIPWAY_LISTEN_ADDRESS: "127.0.0.1",
      ...env,
    };
    this.#child = spawn(process.execPath, [main], { env: all, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (part: Buffer) => {
        this.log += String(part);
      });
    }
  }

  /** Resolves once it has ended. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) {
      return;
    }
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }

  /** All of its metrics as text. */
  async metrics(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.#port}/metrics`)).text();
  }

  async close(): Promise<void> {
    await this.kill("SIGKILL");
    await this.#client.close();
    await this.api.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
