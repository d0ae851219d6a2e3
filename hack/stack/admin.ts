import { spawn } from "node:child_process";
import { findKubectl } from "../cluster/find-kubectl.ts";
import { kubectlFor } from "../cluster/kubectl.ts";
import { readEnvFile } from "../lib/env-file.ts";
import { run } from "../lib/exec.ts";
import { stackFile } from "../lib/paths.ts";
import { UserError } from "../lib/steps.ts";
import { systemNamespace } from "./chart.ts";
import { podsOf } from "./pods.ts";

/** Command line, without the program, that runs the admin command in a ready pod of the API server. */
async function adminExec(command: string[], kubeconfig: string, args: string[]): Promise<string[]> {
  const pods = await podsOf(kubectlFor(command, kubeconfig), "slipway-api-server");
  const pod = pods[0];
  if (!pod) throw new UserError("no pod of the API server is ready; hack/up.sh repairs the stack");
  const inPod = ["node", "api-server/src/admin/main.ts", ...args];
  return [
    ...command.slice(1),
    "--kubeconfig",
    kubeconfig,
    "-n",
    systemNamespace,
    "exec",
    pod.name,
    "-c",
    "api-server",
    "--",
    ...inPod,
  ];
}

/** Kubeconfig of the stack: of its file when it has one, else of the environment. */
function stackKubeconfig(): string {
  const kubeconfig = readEnvFile(stackFile).KUBECONFIG ?? process.env.KUBECONFIG;
  if (!kubeconfig)
    throw new UserError(`there is no stack: no ${stackFile} and no KUBECONFIG; run hack/up.sh`);
  return kubeconfig;
}

/** Runs the admin command with this process's standard output and error; resolves to its exit code. */
export async function runAdmin(args: string[]): Promise<number> {
  const command = await findKubectl();
  const full = await adminExec(command, stackKubeconfig(), args);
  const child = spawn(command[0] ?? "kubectl", full, { stdio: ["ignore", "inherit", "inherit"] });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 1));
  });
}

/** Runs the admin command and returns the one JSON object that it prints. */
export async function adminJson<T>(kubeconfig: string, args: string[]): Promise<T> {
  const command = await findKubectl();
  const out = await run(command[0] ?? "kubectl", await adminExec(command, kubeconfig, [...args, "--json"]));
  return JSON.parse(out) as T;
}
