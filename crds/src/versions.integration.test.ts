import { readdirSync } from "node:fs";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startApiserver, type TestApiserver } from "../../hack/cluster/apiserver.ts";
import { TestClient } from "../../test/kit/crds/apiserver.ts";
import { variationsOf } from "../../test/kit/crds/arbitraries.ts";
import { type FixtureResource, fixtureCases, kindOf, validFixtures } from "../../test/kit/crds/fixtures.ts";
import { committedCrd, zodFailures } from "../../test/kit/crds/layers.ts";
import { isLong } from "../../test/kit/long.ts";
import { type Kind, kinds } from "./kinds.ts";
import { GROUP, SERVED_VERSIONS, VERSION } from "./names.ts";

/** What is written in one version is the same in all, before a real kube-apiserver with the committed definitions. */

let api: TestApiserver;
const clients = new Map<string, TestClient>();

beforeAll(async () => {
  api = await startApiserver();
  for (const version of SERVED_VERSIONS) {
    clients.set(version, new TestClient(api.kubeconfig, version));
  }
  for (const file of readdirSync(new URL("../generated/", import.meta.url))) {
    await clientOf(VERSION).installCrd(committedCrd(file));
  }
});

afterAll(async () => {
  for (const client of clients.values()) {
    client.close();
  }
  await api?.stop();
});

function clientOf(version: string): TestClient {
  const client = clients.get(version);
  if (client === undefined) {
    throw new Error(`no client of ${version}`);
  }
  return client;
}

const inVersion = (resource: FixtureResource, version: string): FixtureResource => ({
  ...resource,
  apiVersion: `${GROUP}/${version}`,
});

const project = kinds.find(({ kind }) => kind === "Project") as Kind;
const GENERATED = isLong ? 10_000 : 200;
const generated = (name: string, spec: Record<string, unknown>): FixtureResource => ({
  apiVersion: `${GROUP}/${VERSION}`,
  kind: "Project",
  metadata: { name },
  spec,
});

const others = SERVED_VERSIONS.filter((version) => version !== VERSION);

describe.each(others)("%s", (version) => {
  it.each(validFixtures())(
    "%s is the same object in both versions, whichever it was written in",
    async (_, resource) => {
      const kind = kindOf(resource);
      const { name } = resource.metadata;
      for (const [written, read] of [
        [version, VERSION],
        [VERSION, version],
      ] as const) {
        await clientOf(VERSION).remove(kind, name);
        const created = await clientOf(written).create(kind, inVersion(resource, written));
        expect(created.body.message ?? "", `status ${created.status}`).toBe("");
        const found = (await clientOf(read).read(kind, name)).body as unknown as FixtureResource;
        expect(found.apiVersion).toBe(`${GROUP}/${read}`);
        expect(found.spec).toEqual(created.body.spec);
        if (resource.status === undefined) {
          continue;
        }
        const replaced = await clientOf(read).replace(
          kind,
          { ...found, status: resource.status },
          { status: true },
        );
        expect(replaced.body.message ?? "", `status ${replaced.status}`).toBe("");
        expect((await clientOf(written).read(kind, name)).body.status).toEqual(replaced.body.status);
      }
    },
  );

  it(`${GENERATED} generated projects are the same in both, and unchanged when they are written back in the other`, async () => {
    const specs = validFixtures().flatMap(([, { kind, spec }]) => (kind === "Project" ? [spec] : []));
    const valid = variationsOf(specs).filter(
      (spec) => zodFailures(project, generated("any", spec)).length === 0,
    );
    const left = [...fc.sample(valid, GENERATED).entries()];
    const roundTrip = async (index: number, spec: Record<string, unknown>) => {
      const [written, read] = index % 2 === 0 ? [version, VERSION] : [VERSION, version];
      const name = `generated-${index}`;
      const created = await clientOf(written).create(project, inVersion(generated(name, spec), written));
      expect(created.status, `${created.body.message} ${JSON.stringify(spec)}`).toBe(201);
      const found = (await clientOf(read).read(project, name)).body as unknown as FixtureResource;
      expect(found.spec).toEqual(created.body.spec);
      const replaced = await clientOf(read).replace(project, found);
      expect((replaced.body.metadata as { resourceVersion: string }).resourceVersion).toBe(
        found.metadata.resourceVersion,
      );
      await clientOf(read).remove(project, name);
    };
    const worker = async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) {
        await roundTrip(...next);
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
  }, 900_000);

  const refused = fixtureCases("invalid").filter(({ only, status }) => only.includes("apiserver") && !status);
  it.each(refused.map((one) => [one.name, one] as const))("refuses alike: %s", async (_, one) => {
    const answers = await Promise.all(
      SERVED_VERSIONS.map((each) => clientOf(each).create(one.kind, inVersion(one.changed, each), true)),
    );
    expect([400, 422]).toContain(answers[0]?.status);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => answers[0]?.status));
    const causes = answers.map(({ body }) => JSON.stringify(causesOf(body)));
    expect(new Set(causes).size).toBe(1);
  });
});

/** What an apiserver found wrong, in an order of its own each time. */
function causesOf(body: Record<string, unknown>): string[] {
  const { causes = [] } = (body.details ?? {}) as { causes?: { field?: string; message?: string }[] };
  return causes.map(({ field, message }) => `${field}: ${message}`).sort();
}
