import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { binaryFile, ensureBinary } from "./binaries.ts";

interface Definition {
  kind: string;
  spec: { group: string; names: { plural: string } };
}

interface Role {
  kind: string;
  rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[];
}

const documents = async <T extends { kind: string }>(file: string, kind: string): Promise<T[]> =>
  parseAllDocuments(await readFile(file, "utf8"))
    .map((document) => document.toJS() as T | null)
    .filter((object) => object?.kind === kind) as T[];

test("Traefik may read all kinds that its own source defines: one less, and it reads none", async () => {
  await ensureBinary("traefik");
  const definitions = await documents<Definition>(
    binaryFile("traefik", "definitions.yaml"),
    "CustomResourceDefinition",
  );
  const defined = definitions.map(({ spec }) => `${spec.names.plural}.${spec.group}`);
  expect(defined).toContain("middlewares.traefik.io");

  const [role] = await documents<Role>(join(import.meta.dirname, "addons/traefik.yaml"), "ClusterRole");
  const own = role?.rules.filter(({ apiGroups }) => apiGroups.includes("traefik.io")) ?? [];
  expect(own.flatMap(({ resources }) => resources.map((name) => `${name}.traefik.io`)).sort()).toEqual(
    defined.toSorted(),
  );
  for (const { verbs } of own) {
    expect(verbs.toSorted()).toEqual(["get", "list", "watch"]);
  }
});
