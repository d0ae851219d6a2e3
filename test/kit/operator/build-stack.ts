/** Builds on a real apiserver, with the rights that the chart gives and no more, and a real ledger; the test is the node. */

import { generateKeyPairSync } from "node:crypto";
import type { KubeConfig } from "@kubernetes/client-node";
import type { Step } from "@slipway/builder/contract";
import { type KubernetesObject, Manager, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import type { Build, Project } from "@slipway/crds";
import {
  connectLedger,
  findBuild,
  type Ledger,
  migrateToLatest,
  readBuildLog,
  recordBuild,
  recordBuildLog,
} from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { stringify } from "yaml";
import {
  addBuildController,
  type BuildOptions,
  buildsNamespaceRules,
  organizationRules,
  rules,
} from "../../../operator/src/builds/controller.ts";
import { BUILD_NAME_ANNOTATION } from "../../../operator/src/builds/names.ts";
import type { BuildPod } from "../../../operator/src/builds/pod-state.ts";
import { type BuildSettings, parseBuildSettings } from "../../../operator/src/builds/settings.ts";
import { buildResource, projectResource } from "../../../operator/src/resources.ts";
import { startPostgres, type TestPostgres } from "../servers/postgresql.ts";
import { FakeKubelet } from "./build-kubelet.ts";
import { grantedConfig } from "./grant.ts";
import { startCluster, type TestCluster } from "./harness.ts";
import { exampleProject } from "./projects.ts";

export const ORGANIZATION = "slipway-org-alpha";
export const BUILDS = "slipway-builds";

export const source = { connectionId: "g1", repositoryId: "r1", branch: "main", autoDeploy: true };
export const ref = (name: string) => ({ namespace: ORGANIZATION, name });
export const digestOf = (letter: string) => `sha256:${letter.repeat(64)}`;

/** A line as the runner writes it. */
export const line = (step: Step, seq: number, message: string) =>
  `${JSON.stringify({ seq, at: new Date().toISOString(), level: "info", step, message })}\n`;

const key = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();

export interface RunningOperator {
  stop(): Promise<void>;
}

/** How an operator is started that is not the usual one. */
export interface OperatorOptions {
  /** Address of the apiserver in place of its own. */
  server?: string;
  builds?: Partial<BuildOptions>;
}

export class BuildStack {
  readonly cluster: TestCluster;
  readonly ledger: Ledger;
  readonly kubelet: FakeKubelet;
  readonly #postgres: TestPostgres;
  readonly #settings: BuildSettings;
  readonly #config: KubeConfig;
  #operator: RunningOperator | undefined;

  private constructor(
    cluster: TestCluster,
    postgres: TestPostgres,
    { ledger, kubelet, config }: { ledger: Ledger; kubelet: FakeKubelet; config: KubeConfig },
  ) {
    this.cluster = cluster;
    this.#postgres = postgres;
    this.ledger = ledger;
    this.kubelet = kubelet;
    this.#config = config;
    this.#settings = parseBuildSettings(
      stringify({ image: "builder:1", registry: { host: "registry.example" }, concurrency: 1, tries: 2 }),
    );
  }

  /** Takes about 10 s; no operator runs yet. */
  static async start(): Promise<BuildStack> {
    const [cluster, postgres] = await Promise.all([startCluster(), startPostgres()]);
    const ledger = connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 4 });
    await migrateToLatest(ledger);
    for (const name of [ORGANIZATION, BUILDS]) {
      await cluster.client.create<KubernetesObject>(resources.namespaces, { metadata: { name } });
    }
    const config = await grantedConfig(cluster, BUILDS, {
      cluster: rules,
      namespaced: { [ORGANIZATION]: organizationRules, [BUILDS]: buildsNamespaceRules },
    });
    const kubelet = await FakeKubelet.start(cluster.client);
    return new BuildStack(cluster, postgres, { ledger, kubelet, config });
  }

  async stop(): Promise<void> {
    await this.#operator?.stop();
    await this.kubelet.stop();
    await this.ledger.destroy();
    await this.#postgres.stop();
    await this.cluster.stop();
  }

  /** Starts the operator that `stop` stops. */
  begin(options: OperatorOptions = {}): void {
    this.#operator = this.operator(options);
  }

  async halt(): Promise<void> {
    await this.#operator?.stop();
    this.#operator = undefined;
  }

  /** Stops the operator and starts another one. */
  async restart(options: OperatorOptions = {}): Promise<void> {
    await this.halt();
    this.begin(options);
  }

  operator({ server, builds }: OperatorOptions = {}): RunningOperator {
    const config = loadKubeConfig({ file: this.cluster.api.kubeconfig });
    Object.assign(config, { users: this.#config.users, contexts: this.#config.contexts });
    if (server) {
      config.clusters = config.clusters.map(({ name }) => ({ name, server, skipTLSVerify: true }));
    }
    const manager = new Manager({
      name: "slipway.dev/operator",
      cluster: config,
      identity: "test",
      log: silentLogger,
      gracePeriodMs: 1,
    });
    const { ledger } = this;
    addBuildController(manager, {
      projects: manager.store<Project>(projectResource),
      settings: () => this.#settings,
      registryKey: () => key,
      tools: () => ({}),
      git: { allowedHosts: [], ca: "" },
      record: (row) => recordBuild(ledger, row),
      storeLog: ({ organizationId, projectId, buildId }, lines) =>
        recordBuildLog(ledger, { organizationId, projectId, id: buildId }, lines),
      openSource: async () => ({
        address: { url: "https://git.example/a/b.git", provider: "forgejo", address: "192.0.2.1" },
        credential: { username: "u", password: "p" },
        ca: "",
      }),
      ...builds,
    });
    const stop = new AbortController();
    const running = manager.run(stop.signal);
    return {
      stop: async () => {
        stop.abort();
        await running;
      },
    };
  }

  /** As kubectl makes one. */
  async makeProject(name: string, given: Partial<typeof source> = {}): Promise<void> {
    const wanted = exampleProject(ref(name), { source: { ...source, ...given }, build: { runtime: "node" } });
    const { image: _image, ...spec } = wanted.spec;
    await this.cluster.client.create(projectResource, { ...wanted, spec });
  }

  async ask(project: string, name: string): Promise<void> {
    await this.cluster.client.create<Build>(buildResource, {
      apiVersion: "slipway.dev/v1alpha1",
      kind: "Build",
      metadata: ref(name),
      spec: {
        projectRef: { name: project },
        triggeredBy: "push",
        // Without it the whole second of the creation counts, in which an earlier build may have been requested.
        requestedAt: new Date().toISOString(),
        branch: "main",
        source,
        build: { runtime: "node" },
      },
    });
  }

  readonly build = (name: string) => this.cluster.client.getOrUndefined<Build>(buildResource, ref(name));
  readonly project = (name: string) => this.cluster.client.get<Project>(projectResource, ref(name));
  readonly phase = async (name: string) => (await this.build(name))?.status?.phase;

  async podOf(name: string): Promise<BuildPod | undefined> {
    const pods = await this.cluster.client.listAll<BuildPod>(resources.pods, { namespace: BUILDS });
    return pods.find(
      ({ metadata }) => metadata.annotations?.[BUILD_NAME_ANNOTATION] === name && !metadata.deletionTimestamp,
    );
  }

  async log(projectId: string, id: string): Promise<string[]> {
    const build = { organizationId: "alpha", projectId, id };
    const lines = await readBuildLog(this.ledger, build, { cursor: 0, limit: 1_000 });
    return lines.map(({ step, message, final }) => `${step}: ${message}${final ? " (final)" : ""}`);
  }

  async row(projectId: string, id: string) {
    const { uid = "" } = (await this.project(projectId)).metadata;
    return findBuild(this.ledger, { organizationId: "alpha", projectId, projectUid: uid, id });
  }

  /** The status that the projects' controller reports for an image. */
  async deploy(name: string, digest: string, status: "succeeded" | "failed"): Promise<void> {
    const image = { reference: `registry.example/alpha/${name}`, digest };
    const deployment = {
      id: `${name}-${digest.slice(-4)}`,
      status,
      startedAt: new Date().toISOString(),
      settingsHash: "h",
      updatedImage: true,
      image,
      message: status === "failed" ? "It did not become ready." : undefined,
      settings: { plan: "basic", image: { url: image.reference, digest, isPublic: false } },
    };
    await this.cluster.client.patch(
      projectResource,
      ref(name),
      { status: { deployments: [deployment] } },
      { subresource: "status" },
    );
  }
}
