import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { KubernetesObject } from "@kubernetes/client-node";
import { afterAll, expect, test } from "vitest";
import { parse } from "yaml";
import { supportedTypes } from "../../api-server/src/projects/supported-types.ts";
import { run } from "../../hack/lib/exec.ts";
import { isLong } from "../kit/long.ts";
import { uniqueName } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { readDatabase, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { namespaceOf, stack } from "./support/stack.ts";

/** The documented databases, created without the API. */

const namespace = namespaceOf(stack.organization);
const made: string[] = [];
const kubectl = (...args: string[]): Promise<string> =>
  run("kubectl", ["--kubeconfig", stack.kubeconfig, "--namespace", namespace, ...args]);

afterAll(async () => {
  for (const name of made) {
    await kubectl("delete", "project", name, "--wait=false");
  }
  await eventually(async () => {
    const left = await kubectl("get", "projects", "--output", "name");
    expect(made.filter((name) => left.includes(name))).toEqual([]);
  });
});

interface Documented extends KubernetesObject {
  spec: { type: string; version: string; instances?: number; storage?: { capacity: number } };
}

// ClickHouse's example is run beside the other tests of ClickHouse.
test.concurrent.for(
  (isLong ? ["postgresql", "mariadb", "clickhouse", "valkey"] : ["postgresql"]).filter((type) =>
    supportedTypes.some((one) => one === type),
  ),
)(
  "the documented %s becomes ready, and kubectl shows engine, version, instances and primary",
  { timeout: 400_000 },
  async (type, { expect }) => {
    const file = join(import.meta.dirname, `../../docs/resources/examples/project-${type}.yaml`);
    const project = parse(await readFile(file, "utf8")) as Documented;
    const name = uniqueName(type);
    project.metadata = { ...project.metadata, name, namespace };
    // The machine that tests run on has less room than the examples ask for.
    if (project.spec.storage) {
      project.spec.storage.capacity = 1;
    }
    await cluster.objects.create(project);
    made.push(name);
    await untilReady({ id: name, namespace }, 360_000);
    const { status } = await readDatabase({ id: name, namespace });
    const rows = (await kubectl("get", "project", name)).trim().split("\n");
    const [header = "", row = ""] = rows;
    const cell = (title: string): string => {
      const start = header.indexOf(title);
      return row.slice(start).split(/ {2,}/)[0]?.trim() ?? "";
    };
    const instances = String(project.spec.instances ?? 1);
    expect({
      engine: cell("ENGINE"),
      version: cell("VERSION"),
      ready: cell("INSTANCES"),
      desired: cell("DESIRED"),
      primary: cell("PRIMARY"),
    }).toMatchObject({
      version: project.spec.version,
      ready: instances,
      desired: instances,
      primary: status?.database?.primary,
    });
    expect(cell("ENGINE")).not.toBe("");
    expect(status?.database?.primary).toMatch(new RegExp(`^${name}-[0-9]$`));
  },
);
