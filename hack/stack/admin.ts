import { request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { readEnvFile } from "../lib/env-file.ts";
import { stackFile } from "../lib/paths.ts";
import { UserError } from "../lib/steps.ts";
import { type ApiserverAccess, apiserverAccess } from "./apiserver-access.ts";
import { NotReached, requestPod } from "./port-forward.ts";
import { type PodList, readyPods } from "./ready-pods.ts";

/** Where Slipway is installed by these scripts, and where its admin server listens (`api-server/src/admin/server.ts`). */
const NAMESPACE = "slipway-system";
const ADMIN_PORT = 8079;

/** How long to try to reach the admin server, which may be starting; and how long a command may take. Milliseconds. */
const REACH_MS = 60_000;
const RETRY_MS = 500;
const COMMAND_MS = 180_000;
const LIST_MS = 10_000;

/** What one call of the admin command printed, and its exit code. */
interface AdminResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Kubeconfig of the stack: of its file when it has one, else of the environment. */
function stackKubeconfig(): string {
  const kubeconfig = readEnvFile(stackFile).KUBECONFIG ?? process.env.KUBECONFIG;
  if (!kubeconfig) {
    throw new UserError(`there is no stack: no ${stackFile} and no KUBECONFIG; run hack/up.sh`);
  }
  return kubeconfig;
}

/** Has the admin server run a command. A command is sent once at most: only what did not reach it is tried again. */
async function askAdminServer(kubeconfig: string, args: string[]): Promise<AdminResult> {
  const access = await apiserverAccess(kubeconfig);
  const deadline = performance.now() + REACH_MS;
  for (;;) {
    try {
      const pod = await readyPod(access);
      const line = `${JSON.stringify({ args })}\n`;
      const answer = await requestPod(
        access,
        { namespace: NAMESPACE, pod, port: ADMIN_PORT },
        line,
        COMMAND_MS,
      );
      return JSON.parse(answer) as AdminResult;
    } catch (error) {
      if (!(error instanceof NotReached)) {
        throw new UserError(
          `${(error as Error).message}: whether the command was done is unknown; the audit log says so`,
        );
      }
      if (performance.now() > deadline) {
        throw new UserError(
          `the admin server is not reached: ${error.message}; hack/up.sh repairs the stack`,
        );
      }
      await sleep(RETRY_MS);
    }
  }
}

/** @throws NotReached when no pod of the admin server is ready, or the apiserver does not say */
async function readyPod(access: ApiserverAccess): Promise<string> {
  const selector = encodeURIComponent("app.kubernetes.io/name=slipway-admin");
  const list = await get(access, `/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=${selector}`);
  const pod = readyPods(JSON.parse(list) as PodList)[0];
  if (!pod) {
    throw new NotReached("no pod of slipway-admin is ready");
  }
  return pod.name;
}

function get({ server, headers, tls }: ApiserverAccess, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(new NotReached(error.message));
    const call = request(`${server}${path}`, { ...tls, headers, timeout: LIST_MS }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", fail);
      response.on("end", () => {
        if (response.statusCode !== 200) {
          fail(new Error(`the apiserver answers ${response.statusCode}`));
        } else {
          resolve(Buffer.concat(chunks).toString("utf8"));
        }
      });
    });
    call.on("timeout", () => call.destroy(new Error("the apiserver does not answer")));
    call.on("error", fail);
    call.end();
  });
}

/** Runs the admin command with this process's standard output and error; resolves to its exit code. */
export async function runAdmin(args: string[]): Promise<number> {
  const { exitCode, stdout, stderr } = await askAdminServer(stackKubeconfig(), args);
  process.stderr.write(stderr);
  process.stdout.write(stdout);
  return exitCode;
}

/** Runs a command of `admin platform`, with the stack's kubeconfig; resolves to its exit code. */
export async function runPlatform(args: string[]): Promise<number> {
  process.env.KUBECONFIG = stackKubeconfig();
  // Imported only for it: the other commands need none of it.
  const { platformProgram } = await import("@slipway/recovery");
  const program = platformProgram(
    (text) => process.stdout.write(text),
    (text) => process.stderr.write(text),
  );
  await program.parseAsync(args, { from: "user" });
  return 0;
}

/** Runs the admin command and returns the one JSON object that it prints. */
export async function adminJson<T>(kubeconfig: string, args: string[]): Promise<T> {
  const { exitCode, stdout, stderr } = await askAdminServer(kubeconfig, [...args, "--json"]);
  if (exitCode !== 0) {
    throw new UserError(`slipway ${args.join(" ")} failed: ${stderr.trim()}`);
  }
  return JSON.parse(stdout) as T;
}
