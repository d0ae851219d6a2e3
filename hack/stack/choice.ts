import { succeeds } from "../lib/exec.ts";
import { UserError } from "../lib/steps.ts";
import type { UpOptions } from "./options.ts";

export interface Machine {
  dockerAnswers: boolean;
  linux: boolean;
  root: boolean;
}

export interface Choice {
  cluster: "context" | "kind" | "embedded";
  /** Half a sentence, to be printed. */
  why: string;
}

/**
 * Which cluster to use: the named context, else the requested one, else kind where a Docker engine answers, else the
 * embedded one.
 * @throws UserError when the machine cannot run it
 */
export function chooseCluster(options: Pick<UpOptions, "context" | "cluster">, machine: Machine): Choice {
  if (options.context !== undefined) {
    return { cluster: "context", why: `--context ${options.context}` };
  }
  if (options.cluster === "kind") {
    if (!machine.dockerAnswers) {
      throw new UserError("--cluster kind needs a Docker engine, and none answers");
    }
    return { cluster: "kind", why: "--cluster kind" };
  }
  if (options.cluster === undefined && machine.dockerAnswers) {
    return { cluster: "kind", why: "a Docker engine answers" };
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

/** Inspects the machine that this runs on. */
export async function inspectMachine(): Promise<Machine> {
  return {
    dockerAnswers: await succeeds("docker", ["info"], { timeoutMs: 5_000 }),
    linux: process.platform === "linux",
    root: process.getuid?.() === 0,
  };
}
