import { type RunOptions, run } from "../lib/exec.ts";

/** Runs kubectl against one cluster and returns its standard output. */
export type Kubectl = (args: string[], options?: RunOptions) => Promise<string>;

/**
 * A kubectl bound to a kubeconfig.
 * @param command the kubectl to run, with words before its own arguments
 */
export function kubectlFor(command: string[], kubeconfig: string): Kubectl {
  const [program, ...before] = command;
  if (!program) {
    throw new Error("no kubectl");
  }
  const bound = [...before, "--kubeconfig", kubeconfig];
  return (args, options) => run(program, [...bound, ...args], options);
}

/** Applies manifests by server-side apply as field manager `slipway-up`. */
export async function applyManifests(kubectl: Kubectl, yaml: string, log?: string): Promise<void> {
  const args = ["apply", "--server-side", "--force-conflicts", "--field-manager=slipway-up", "-f", "-"];
  await kubectl(args, { input: yaml, log });
}
