import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import type { TestApiserver } from "../../../hack/cluster/apiserver.ts";
import { root } from "../../../hack/lib/paths.ts";
import { acquireApiserver } from "../../../test/kit/clusters/shared-apiserver.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { KubeClient } from "./client/client.ts";
import { loadKubeConfig } from "./client/kube-config.ts";
import { customResource, resources } from "./client/resources.ts";
import type { Condition, KubernetesObject } from "./client/types.ts";
import type { StatusObject } from "./status/status.ts";

interface Deployment extends KubernetesObject {
  spec: { replicas: number; template: { spec: { containers: { image: string }[] } } };
}

const websites = customResource("example.com", "v1", "websites", "Website");
const ref = { namespace: "readme", name: "home" };
const TIMEOUT_MS = 60_000;

let api: TestApiserver;
let client: KubeClient;
let folder: string;
let operator: ChildProcess;
let output = "";

/** The first code block of a language. */
const blockOf = (readme: string, language: string): string => {
  const [, block] = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "ms").exec(readme) ?? [];
  if (block === undefined) {
    throw new Error(`the README has no block of ${language}`);
  }
  return block;
};

beforeAll(async () => {
  api = await acquireApiserver();
  client = KubeClient.fromConfig(loadKubeConfig({ file: api.kubeconfig }));
  const readme = await readFile(join(import.meta.dirname, "../README.md"), "utf8");
  await client.create(resources.customResourceDefinitions, parse(blockOf(readme, "yaml")));
  await eventually("websites served", () => client.list(websites).catch(() => undefined), TIMEOUT_MS);
  await client.create(resources.namespaces, { metadata: { name: ref.namespace } });
  folder = await mkdtemp(join(tmpdir(), "slipway-readme-"));
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "operator.mts"), blockOf(readme, "ts"));
  operator = spawn(process.execPath, [join(folder, "operator.mts")], {
    env: { ...process.env, KUBECONFIG: api.kubeconfig, METRICS_PORT: "0" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [operator.stdout, operator.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
});

afterAll(async () => {
  operator?.kill("SIGKILL");
  await removeDefinition();
  await client?.close();
  await api?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Other files use the apiserver afterwards, whose definitions stay. */
async function removeDefinition(): Promise<void> {
  const { plural, group } = websites;
  const definition = { name: `${plural}.${group}` };
  await client.delete(resources.customResourceDefinitions, definition);
  await eventually(
    "the definition to be deleted",
    async () => (await client.getOrUndefined(resources.customResourceDefinitions, definition)) === undefined,
    TIMEOUT_MS,
  );
}

const deployment = () => client.getOrUndefined<Deployment>(resources.deployments, ref);

async function readyIs(status: Condition["status"]): Promise<Condition | undefined> {
  const website = await client.get<StatusObject>(websites, ref);
  const condition = website.status?.conditions?.find(({ type }) => type === "Ready");
  return condition?.status === status ? condition : undefined;
}

/** Waits while the operator runs; when that takes too long, the error has what it printed. */
const observed = <T>(what: string, check: () => Promise<T | undefined>): Promise<T> => {
  const checkRunning = () => {
    if (operator.exitCode !== null) {
      throw new Error(`the operator has ended with ${operator.exitCode} before: ${what}`);
    }
    return check();
  };
  return eventually(what, checkRunning, TIMEOUT_MS).catch((error: Error) => {
    throw new Error(`${error.message}\n${output}`);
  }) as Promise<T>;
};

test("the operator of the README reconciles a custom resource", { timeout: 6 * TIMEOUT_MS }, async () => {
  const spec = { image: "example.com/web:1", replicas: 2 };
  const website = await client.create(websites, { metadata: ref, spec } as KubernetesObject);

  const created = await observed("deployment created", deployment);
  expect(created.spec.replicas).toBe(2);
  expect(created.spec.template.spec.containers[0]?.image).toBe("example.com/web:1");
  expect(created.metadata).toMatchObject({
    ownerReferences: [{ kind: "Website", name: "home", uid: website.metadata?.uid, controller: true }],
    annotations: { "example.com/applied-by": "website-operator" },
  });
  expect(await observed("not ready", () => readyIs("False"))).toMatchObject({ reason: "RolloutInProgress" });

  // No kubelet is here that would start pods.
  await client.patch(
    resources.deployments,
    ref,
    { status: { replicas: 2, readyReplicas: 2 } },
    { subresource: "status" },
  );
  await observed("ready", () => readyIs("True"));

  await client.patch(resources.deployments, ref, { spec: { replicas: 7 } });
  await observed("edited deployment restored", async () => (await deployment())?.spec.replicas === 2);

  await client.delete(resources.deployments, ref);
  const restored = await observed("deleted deployment restored", deployment);
  expect(restored.metadata?.uid).not.toBe(created.metadata?.uid);
  await observed("not ready again", () => readyIs("False"));

  operator.kill("SIGTERM");
  await once(operator, "exit");
  expect(operator.exitCode).toBe(0);
});
