import { parseArgs } from "node:util";
import type { NodeImageChoice } from "../cluster/kind/config.ts";
import type { EngineName } from "../cluster/kind/engine.ts";
import {
  defaultKubernetes,
  isKubernetesVersion,
  type KubernetesVersion,
  kubernetesVersions,
} from "../cluster/node-images.ts";
import { UserError } from "../lib/steps.ts";
import { type DatabaseChoice, parseDatabaseChoice } from "./database-choice.ts";

export interface UpOptions {
  help: boolean;
  /** Context of the current kubeconfig: the only way to a cluster that these scripts did not make. */
  context: string | undefined;
  cluster: "embedded" | "kind" | undefined;
  /** What runs kind's nodes. */
  engine: EngineName | undefined;
  /** How many nodes kind's cluster has. */
  nodes: number | undefined;
  /** Which image kind's nodes run from. */
  nodeImage: NodeImageChoice | undefined;
  /** Version of Kubernetes of kind's node. */
  kubernetes: KubernetesVersion | undefined;
  /** Registry, as `host[:port][/path]`, that takes the images for `--context`. */
  registry: string | undefined;
  /** File of the CA that signs that registry's certificate. */
  registryCa: string | undefined;
  /** Which images of databases the stack is to have. */
  databases: DatabaseChoice;
  /** Whether the stack is to have what builds need: a Git server, a registry of their own, images. */
  builds: boolean;
  apiPort: number;
  ingressPort: number;
  rateLimitScale: number;
  /** File with more values of the chart, which replace those of the stack. */
  values: string | undefined;
  /** Folder of a release's bundle that images and chart come from; undefined: these sources. */
  bundle: string | undefined;
  /** File of the public key that the bundle is signed with. */
  bundleKey: string | undefined;
}

export const usage = `usage: hack/up.sh [--cluster embedded] [--cluster kind [--engine docker|podman] [--nodes NUMBER]
                  [--node-image own|published] [--kubernetes VERSION]] [--context NAME --registry HOST[:PORT] [--registry-ca FILE]]
                  [--databases default|all|none|ENGINE:VERSION,...] [--builds on|off] [--bundle DIR [--bundle-key FILE]]

Installs Slipway on a cluster of its own, or on an existing one. Run again, it upgrades what
changed, repairs what failed, and keeps the data.

  --cluster embedded   Kubernetes from processes of this machine (Linux, root); chosen where no Docker engine answers
  --cluster kind       kind on Docker, or on podman as root; chosen where a Docker engine answers
  --engine WHICH       with --cluster kind: docker or podman; Docker where it answers
  --nodes NUMBER       with --cluster kind: 1 to 5, one by default; the ingress is on the first
  --node-image WHICH   with --cluster kind: own is made from these sources without a registry (podman, control groups of
                       version 1, Kubernetes ${defaultKubernetes}; chosen where that is so), published is kind's
  --kubernetes VERSION with --cluster kind: ${kubernetesVersions.join(", ")}; ${defaultKubernetes} by default
  --context NAME       an existing cluster: that context of the current kubeconfig
  --registry HOST      with --context: a registry that this machine pushes to and the cluster pulls from
  --registry-ca FILE   with --registry: the CA of its certificate, if not one that the machine trusts
  --databases WHICH    images of databases to build: default (one version of each engine), all, none, or a list
                       as in postgresql:16,mariadb:10; none with --context. What a stack has, it keeps
  --builds on|off      whether to start what builds from Git need: a Git server, a registry, base images (on; they are
                       for the embedded cluster alone). What of it runs is left running by off
  --bundle DIR         install a release: images and chart come from its bundle, which hack/release.sh makes, and
                       nothing is built. With another one later, the stack is upgraded, or goes back
  --bundle-key FILE    with --bundle: the public key (PEM) that it has to be signed with
  --help               this text

environment:
  SLIPWAY_API_PORT          loopback port of the API, 8081 by default
  SLIPWAY_INGRESS_PORT      loopback port of the projects' ingress, 8080 by default
  SLIPWAY_RATE_LIMIT_SCALE  multiplies every rate limit, 1 by default
  SLIPWAY_VALUES            file with more values of the chart, which replace those of the stack`;

/**
 * Reads the command line and environment of hack/up.sh.
 * @throws UserError naming the first thing that is wrong
 */
export function parseUpOptions(argv: string[], env: Record<string, string | undefined>): UpOptions {
  const values = readArguments(argv);
  if (values.cluster !== undefined && values.cluster !== "embedded" && values.cluster !== "kind") {
    throw new UserError(`--cluster is embedded or kind, not ${values.cluster}`);
  }
  if (values.context !== undefined && values.cluster !== undefined) {
    throw new UserError("--context and --cluster exclude each other");
  }
  if (values.context === "") {
    throw new UserError("--context needs a name");
  }
  if (values.context !== undefined && !values.registry && !values.help) {
    throw new UserError("--context needs --registry: a registry that the cluster pulls from");
  }
  if (values.registry !== undefined && values.context === undefined) {
    throw new UserError("--registry goes with --context; the other clusters have their own");
  }
  if (values.builds !== undefined && values.builds !== "on" && values.builds !== "off") {
    throw new UserError(`--builds is on or off, not ${values.builds}`);
  }
  if (values["bundle-key"] !== undefined && values.bundle === undefined) {
    throw new UserError("--bundle-key goes with --bundle");
  }
  const { kubernetes } = values;
  if (kubernetes !== undefined && values.cluster !== "kind") {
    throw new UserError("--kubernetes goes with --cluster kind; the other clusters have their own version");
  }
  if (kubernetes !== undefined && !isKubernetesVersion(kubernetes)) {
    throw new UserError(`--kubernetes is one of ${kubernetesVersions.join(", ")}, not ${kubernetes}`);
  }
  const { engine, nodes, "node-image": nodeImage } = values;
  for (const [option, value] of Object.entries({ engine, nodes, "node-image": nodeImage })) {
    if (value !== undefined && values.cluster !== "kind") {
      throw new UserError(`--${option} goes with --cluster kind`);
    }
  }
  if (engine !== undefined && engine !== "docker" && engine !== "podman") {
    throw new UserError(`--engine is docker or podman, not ${engine}`);
  }
  if (nodeImage !== undefined && nodeImage !== "own" && nodeImage !== "published") {
    throw new UserError(`--node-image is own or published, not ${nodeImage}`);
  }
  if (nodes !== undefined && !/^[1-5]$/.test(nodes)) {
    throw new UserError(`--nodes is a number from 1 to 5, not ${nodes}`);
  }
  const options: UpOptions = {
    help: values.help ?? false,
    context: values.context,
    cluster: values.cluster,
    engine,
    nodes: nodes === undefined ? undefined : Number(nodes),
    nodeImage,
    kubernetes,
    registry: values.registry,
    registryCa: values["registry-ca"],
    databases: parseDatabaseChoice(values.databases ?? (values.context === undefined ? "default" : "none")),
    builds: values.builds !== "off",
    apiPort: port(env, "SLIPWAY_API_PORT", 8081),
    ingressPort: port(env, "SLIPWAY_INGRESS_PORT", 8080),
    rateLimitScale: positive(env, "SLIPWAY_RATE_LIMIT_SCALE", 1),
    values: env.SLIPWAY_VALUES || undefined,
    bundle: values.bundle,
    bundleKey: values["bundle-key"],
  };
  if (options.apiPort === options.ingressPort) {
    throw new UserError(`SLIPWAY_API_PORT and SLIPWAY_INGRESS_PORT are both ${options.apiPort}`);
  }
  return options;
}

function readArguments(argv: string[]) {
  try {
    return parseArgs({
      args: argv,
      options: {
        help: { type: "boolean", short: "h" },
        context: { type: "string" },
        cluster: { type: "string" },
        engine: { type: "string" },
        nodes: { type: "string" },
        "node-image": { type: "string" },
        kubernetes: { type: "string" },
        registry: { type: "string" },
        "registry-ca": { type: "string" },
        databases: { type: "string" },
        builds: { type: "string" },
        bundle: { type: "string" },
        "bundle-key": { type: "string" },
      },
    }).values;
  } catch (error) {
    throw new UserError(`${(error as Error).message.split(". ")[0]}; hack/up.sh --help lists the options`);
  }
}

function port(env: Record<string, string | undefined>, name: string, fallback: number): number {
  const text = env[name];
  if (!text) {
    return fallback;
  }
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > 65_535) {
    throw new UserError(`${name} is no port: ${text}`);
  }
  return value;
}

function positive(env: Record<string, string | undefined>, name: string, fallback: number): number {
  const text = env[name];
  if (!text) {
    return fallback;
  }
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) {
    throw new UserError(`${name} is no positive number: ${text}`);
  }
  return value;
}
