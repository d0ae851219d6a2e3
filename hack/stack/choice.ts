import type { EngineName } from "../cluster/kind/engine.ts";
import { succeeds } from "../lib/exec.ts";
import { UserError } from "../lib/steps.ts";
import type { UpOptions } from "./options.ts";

export interface Machine {
  dockerAnswers: boolean;
  /** Whether there is podman, or a Debian machine's root may install it. */
  podman: boolean;
  linux: boolean;
  root: boolean;
}

export interface Choice {
  cluster: "context" | "kind" | "embedded";
  /** Half a sentence, to be printed. */
  why: string;
  /** What runs kind's nodes. */
  engine?: EngineName;
}

/**
 * Which cluster to use: the named context, else the requested one, else kind where a Docker engine answers, else the
 * embedded one.
 * @throws UserError when the machine cannot run it
 */
export function chooseCluster(
  options: Pick<UpOptions, "context" | "cluster" | "engine">,
  machine: Machine,
): Choice {
  if (options.context !== undefined) {
    return { cluster: "context", why: `--context ${options.context}` };
  }
  if (options.cluster === "kind") {
    return { cluster: "kind", why: "--cluster kind", engine: chooseEngine(options.engine, machine) };
  }
  if (options.cluster === undefined && machine.dockerAnswers) {
    return { cluster: "kind", why: "a Docker engine answers", engine: "docker" };
  }
  if (!machine.linux) {
    throw new UserError("the embedded cluster needs Linux; elsewhere, start Docker for kind");
  }
  if (!machine.root) {
    throw new UserError("the embedded cluster needs root: run hack/up.sh as root");
  }
  const why = options.cluster === "embedded" ? "--cluster embedded" : "no Docker engine answers";
  return { cluster: "embedded", why };
}

/** Docker where it answers, else podman, unless one is requested. */
function chooseEngine(requested: EngineName | undefined, machine: Machine): EngineName {
  const engine = requested ?? (machine.dockerAnswers ? "docker" : "podman");
  if (engine === "docker" && !machine.dockerAnswers) {
    throw new UserError("--engine docker: no Docker engine answers");
  }
  if (engine === "podman" && !machine.podman) {
    throw new UserError(
      "--cluster kind needs a Docker engine, and none answers, or podman as root, which is not here either",
    );
  }
  return engine;
}

/** Inspects the machine that this runs on. */
export async function inspectMachine(): Promise<Machine> {
  const linux = process.platform === "linux";
  const root = process.getuid?.() === 0;
  const hasPodman = async () =>
    (await succeeds("podman", ["--version"])) || (await succeeds("dpkg-query", ["--version"]));
  return {
    dockerAnswers: await succeeds("docker", ["info"], { timeoutMs: 5_000 }),
    podman: linux && root && (await hasPodman()),
    linux,
    root,
  };
}
