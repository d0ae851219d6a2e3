import { mkdir } from "node:fs/promises";
import { CommandError, run } from "../lib/exec.ts";
import { writeFileAtomic } from "../lib/files.ts";
import { adminKubeconfig, confDir, logDir, stateDir } from "../lib/paths.ts";
import { step, UserError } from "../lib/steps.ts";
import { ensureBinary } from "./binaries.ts";
import type { Cluster } from "./cluster.ts";
import { findKubectl } from "./find-kubectl.ts";
import { kubectlFor } from "./kubectl.ts";

/** CA bundle of a Debian machine. */
const machineAuthorities = "/etc/ssl/certs/ca-certificates.crt";

/**
 * The kubeconfig of one context of the user's current kubeconfig, alone, once its cluster has answered.
 * @throws UserError when there is no such context, or its cluster does not answer
 */
export async function contextKubeconfig(command: string[], context: string): Promise<string> {
  const [program, ...before] = command;
  if (!program) {
    throw new Error("no kubectl");
  }
  const view = ["config", "view", "--minify", "--flatten", "--raw", "--context", context];
  const text = await run(program, [...before, ...view]).catch(() => {
    throw new UserError(`the current kubeconfig has no context ${context}`);
  });
  const query = ["--context", context, "--request-timeout=10s", "get", "--raw", "/version"];
  await run(program, [...before, ...query], { timeoutMs: 20_000 }).catch((error: Error) => {
    const reason = error instanceof CommandError ? error.stderr.trim().split("\n").at(-1) : error.message;
    throw new UserError(`the cluster of context ${context} does not answer: ${reason}`);
  });
  return text;
}

/** An existing cluster. Nothing is done to it here: what belongs to the cluster itself is its owner's. */
export async function useContext(
  context: string,
  registry: string,
  registryCa: string | undefined,
): Promise<Cluster> {
  const command = await findKubectl();
  const kubeconfig = await contextKubeconfig(command, context);
  for (const dir of [stateDir, logDir, confDir]) {
    await mkdir(dir, { recursive: true });
  }
  await writeFileAtomic(adminKubeconfig, kubeconfig);
  const helm = await step("cluster tools", () => ensureBinary("helm"));
  return {
    kind: "context",
    kubeconfig: adminKubeconfig,
    kubectl: kubectlFor(command, adminKubeconfig),
    helm,
    registry: { push: { host: registry, caFile: registryCa ?? machineAuthorities }, pull: registry },
    importImage: undefined,
    apiUrl: undefined,
    ingressUrl: undefined,
    networks: undefined,
    podsReachable: false,
    databaseHost: undefined,
    collector: undefined,
    builds: undefined,
    waitForSlowParts: async () => {},
  };
}
