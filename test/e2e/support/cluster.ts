import { PassThrough } from "node:stream";
import {
  AppsV1Api,
  AuthorizationV1Api,
  BatchV1Api,
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  DiscoveryV1Api,
  Exec,
  KubeConfig,
  KubernetesObjectApi,
  NetworkingV1Api,
  type V1Status,
} from "@kubernetes/client-node";
import { stack } from "./stack.ts";

/** Access to the stack's cluster, as its administrator. */
export const config = new KubeConfig();
config.loadFromFile(stack.kubeconfig);

/** Clients of the stack's cluster, as its administrator. */
export const cluster = {
  core: config.makeApiClient(CoreV1Api),
  apps: config.makeApiClient(AppsV1Api),
  authorization: config.makeApiClient(AuthorizationV1Api),
  batch: config.makeApiClient(BatchV1Api),
  networking: config.makeApiClient(NetworkingV1Api),
  coordination: config.makeApiClient(CoordinationV1Api),
  custom: config.makeApiClient(CustomObjectsApi),
  discovery: config.makeApiClient(DiscoveryV1Api),
  objects: KubernetesObjectApi.makeApiClient(config),
};

export interface ExecResult {
  readonly exitCode: number;
  readonly output: string;
}

/** Runs a command in a container and waits for it; the exit code is the command's own. */
export async function exec(
  namespace: string,
  pod: string,
  container: string,
  command: string[],
): Promise<ExecResult> {
  const output = new PassThrough();
  let text = "";
  output.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
  });
  const status = await new Promise<V1Status>((resolve, reject) => {
    new Exec(config)
      .exec(namespace, pod, container, command, output, output, null, false, resolve)
      .catch(reject);
  });
  const cause = status.details?.causes?.find(({ reason }) => reason === "ExitCode");
  return { exitCode: status.status === "Success" ? 0 : Number(cause?.message ?? 1), output: text };
}
