/** The operators that are compared, and what each of them is given to do. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  customResource,
  type KubeClient,
  type KubernetesObject,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import {
  API_VERSION,
  annotations,
  GROUP,
  labels,
  organizationNamespace,
  plurals,
  VERSION,
} from "@slipway/crds";
import { parse } from "yaml";
import { compileFlags } from "../../../hack/cluster/binaries.ts";
import { moduleEnvironment } from "../../../hack/cluster/go-modules.ts";
import { goEnvironment } from "../../../hack/cluster/processes.ts";
import { bundleOf, writeBundles } from "../../../hack/images/bundle.ts";
import { run } from "../../../hack/lib/exec.ts";
import { root, stateDir } from "../../../hack/lib/paths.ts";
import { freePorts } from "../../../hack/lib/ports.ts";
import { waitFor } from "../../../hack/lib/wait.ts";
import { installDefinitions } from "../../kit/clusters/definitions.ts";
import { startNode } from "../../kit/processes/node.ts";
import { addOrganizations, ORGANIZATION } from "../setup.ts";

/** An operator, and the objects that it makes children of: a Deployment, a Service, an Ingress and a NetworkPolicy each. */
export interface Contender {
  readonly name: string;
  /** As it names itself in an audit log. */
  readonly client: string;
  readonly resource: Resource;
  readonly namespaces: readonly string[];
  /** What the cluster needs before it starts. */
  prepare(): Promise<void>;
  start(options?: StartOptions): Promise<ChildProcess>;
  /** Resolves once it accepts objects; after the first start. */
  ready(): Promise<void>;
  object(index: number): KubernetesObject;
  /** Of an object. */
  refOf(index: number): { namespace: string; name: string };
  /** A merge patch that gives an object this image. */
  change(image: string): object;
}

/** What one of several processes of an operator differs in. */
export interface StartOptions {
  /** Where it shows its own metrics, if it does; a free one by default. */
  metricsPort?: number;
  env?: Record<string, string>;
}

export interface ContenderOptions {
  kube: KubeClient;
  kubeconfig: string;
  /** The environment of a process with a service account. */
  account: Record<string, string>;
  ledgerUrl: string;
}

/** What the names of all objects begin with, and so those of their children. */
export const NAME_PREFIX = "pbench";

/** All of one length: a child is its object's by the beginning of its name. */
export const nameOf = (index: number): string => `${NAME_PREFIX}${String(index).padStart(10, "0")}`;

export const IMAGE = "registry.example.com/team/app:1.2.3";

/** A paused project of type http. */
export const projectOf = (index: number, organization: string): KubernetesObject & { spec: object } => ({
  apiVersion: API_VERSION,
  kind: "Project",
  metadata: {
    name: nameOf(index),
    namespace: organizationNamespace(organization),
    labels: { [labels.organization]: organization, [labels.project]: nameOf(index) },
  },
  spec: {
    type: "http",
    name: `bench-${index}`,
    plan: "basic",
    paymentMode: "hourly",
    exposure: "public",
    image: { url: IMAGE, isPublic: true },
    port: 8080,
    instances: 1,
    paused: true,
    storage: { persistent: false, capacity: 1 },
    networkAccess: { ingressWhiteList: [{ cidr: "0.0.0.0/0", description: "everybody" }] },
  },
});

/**
 * Slipway's operator with paused projects of type http.
 * @param organizations whose projects they are, in turn; one may have 500
 */
export function slipway(
  { kube, account, ledgerUrl }: ContenderOptions,
  organizations: readonly string[] = [ORGANIZATION],
): Contender {
  const namespaces = organizations.map((id) => organizationNamespace(id));
  const ofIndex = <T>(all: readonly T[], index: number): T => all[index % all.length] as T;
  return {
    name: "slipway",
    client: "slipway.dev/operator",
    resource: customResource(GROUP, VERSION, plurals.Project, "Project"),
    namespaces,
    prepare: async () => {
      await writeBundles(root);
      await addOrganizations(
        ledgerUrl,
        organizations.filter((id) => id !== ORGANIZATION),
      );
      await kube.create(resources.namespaces, { metadata: { name: "slipway-system" } });
    },
    start: async ({ metricsPort, env } = {}) => {
      return startNode(bundleOf("operator"), [], {
        SLIPWAY_LEDGER_URL: ledgerUrl,
        SLIPWAY_CATALOG_FILE: join(root, "charts/slipway/files/catalog.yaml"),
        SLIPWAY_NAMESPACE: "slipway-system",
        // No ingress controller runs here, whose class the operator would wait for.
        SLIPWAY_INGRESS_ALLOW_LIST: "none",
        SLIPWAY_EGRESS_DENIED_CIDRS: "10.0.0.0/8",
        SLIPWAY_METRICS_PORT: String(metricsPort ?? (await freePorts(1))[0]),
        SLIPWAY_LOG_LEVEL: "error",
        ...account,
        ...env,
        // As the chart has it.
        NODE_OPTIONS: "--max-old-space-size=614 --max-semi-space-size=16",
        MALLOC_ARENA_MAX: "2",
      });
    },
    ready: () =>
      waitFor("the organizations' namespaces", 300_000, async () => {
        const { items } = await kube.list<KubernetesObject>(resources.namespaces);
        const guarded = items.filter(
          ({ metadata }) => metadata?.annotations?.[annotations.guarded] !== undefined,
        );
        return namespaces.every((namespace) => guarded.some(({ metadata }) => metadata?.name === namespace));
      }).then(() => undefined),
    object: (index) => projectOf(index, ofIndex(organizations, index)),
    refOf: (index) => ({ namespace: ofIndex(namespaces, index), name: nameOf(index) }),
    change: (image) => ({ spec: { image: { url: image } } }),
  };
}

const PEER_NAMESPACE = "peer";

/** The operator of `peer/` with applications of no instances. */
export function peer({ kube, kubeconfig }: ContenderOptions, workers: number): Contender {
  return {
    name: `peer, ${workers} workers`,
    client: "peer",
    resource: customResource("bench.slipway.dev", "v1", "apps", "App"),
    namespaces: [PEER_NAMESPACE],
    refOf: (index) => ({ namespace: PEER_NAMESPACE, name: nameOf(index) }),
    prepare: async () => {
      const definition = parse(
        await readFile(join(import.meta.dirname, "peer/app.yaml"), "utf8"),
      ) as KubernetesObject;
      await installDefinitions(kube, [definition]);
      await kube.apply(
        resources.namespaces,
        { apiVersion: "v1", kind: "Namespace", metadata: { name: PEER_NAMESPACE } },
        { fieldManager: "bench" },
      );
    },
    start: async () => {
      const program = await buildPeer();
      const args = ["--pdeathsig", "KILL", program, `--workers=${workers}`, `--namespace=${PEER_NAMESPACE}`];
      return spawn("setpriv", args, {
        env: { PATH: process.env.PATH, KUBECONFIG: kubeconfig },
        stdio: ["ignore", "ignore", "inherit"],
      });
    },
    ready: async () => {},
    object: (index) => ({
      apiVersion: "bench.slipway.dev/v1",
      kind: "App",
      metadata: { name: nameOf(index), namespace: PEER_NAMESPACE },
      spec: {
        image: IMAGE,
        port: 8080,
        replicas: 0,
        host: `bench-${index}.apps.localhost`,
        env: { GREETING: "hello" },
      },
    }),
    change: (image) => ({ spec: { image } }),
  };
}

/** Builds the peer; Go compiles only what has changed. @returns its path */
export async function buildPeer(): Promise<string> {
  const program = join(stateDir, "bench", "peer");
  const cwd = join(import.meta.dirname, "peer");
  await run("go", ["build", ...compileFlags, "-buildvcs=false", "-o", program, "."], {
    cwd,
    env: { ...moduleEnvironment, ...goEnvironment, CGO_ENABLED: "0" },
  });
  return program;
}
