import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startApiserver, type TestApiserver } from "../../hack/cluster/apiserver.ts";
import { TestClient } from "../../test/kit/crds/apiserver.ts";
import {
  type FixtureCase,
  type FixtureResource,
  fixtureCases,
  kindOf,
  validFixtures,
} from "../../test/kit/crds/fixtures.ts";
import { committedCrd } from "../../test/kit/crds/layers.ts";

/** The same fixtures as in `fixtures.test.ts`, before a real kube-apiserver with the committed definitions. */

let api: TestApiserver;
let client: TestClient;

beforeAll(async () => {
  api = await startApiserver();
  client = new TestClient(api.kubeconfig);
  for (const file of readdirSync(new URL("../generated/", import.meta.url))) {
    await client.installCrd(committedCrd(file));
  }
});

afterAll(async () => {
  client?.close();
  await api?.stop();
});

/** Each case works on a resource of its own name where the name is free to choose. */
async function created(resource: FixtureResource): Promise<FixtureResource> {
  const kind = kindOf(resource);
  await client.remove(kind, resource.metadata.name);
  const { status, body } = await client.create(kind, resource);
  expect(body.message ?? "", `status ${status}`).toBe("");
  return body as unknown as FixtureResource;
}

/** Puts the changed parts of a case over what the apiserver holds. */
const over = (stored: FixtureResource, { changed }: FixtureCase): FixtureResource => ({
  ...changed,
  metadata: stored.metadata,
});

function expectRefusal({ status, body }: Awaited<ReturnType<TestClient["call"]>>, one: FixtureCase): void {
  expect([400, 422], JSON.stringify(body)).toContain(status);
  if (one.path !== undefined) {
    expect(body.message).toContain(one.path);
  }
  if (one.message !== undefined) {
    expect(body.message).toContain(one.message);
  }
}

describe("valid fixtures and documented examples", () => {
  it.each(validFixtures())("%s is accepted, spec and status complete", async (_, resource) => {
    const kind = kindOf(resource);
    const stored = await created(resource);
    expect(stored.spec).toEqual(resource.spec);
    if (resource.status === undefined) {
      return;
    }
    const { status, body } = await client.replace(
      kind,
      { ...stored, status: resource.status },
      { status: true },
    );
    expect(body.message ?? "", `status ${status}`).toBe("");
    expect(body.status).toEqual(resource.status);
  });
});

const invalid = fixtureCases("invalid");

describe("invalid fixtures", () => {
  const refused = invalid.filter(({ only }) => only.includes("apiserver"));
  it.each(refused.filter(({ status }) => !status).map((one) => [one.name, one] as const))(
    "%s",
    async (_, one) => {
      expectRefusal(await client.create(one.kind, one.changed, true), one);
    },
  );

  it.each(refused.filter(({ status }) => status).map((one) => [one.name, one] as const))(
    "%s",
    async (_, one) => {
      const stored = await created(one.base);
      expectRefusal(await client.replace(one.kind, over(stored, one), { status: true, dryRun: true }), one);
    },
  );
});

describe("changes to what exists", () => {
  it.each(fixtureCases("update").map((one) => [one.name, one] as const))("%s", async (_, one) => {
    const stored = await created(one.base);
    const answer = await client.replace(one.kind, over(stored, one), { dryRun: true });
    if (one.message === undefined) {
      expect(answer.body.message ?? "", `status ${answer.status}`).toBe("");
    } else {
      expectRefusal(answer, one);
    }
  });
});
