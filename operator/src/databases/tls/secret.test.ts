import { KubeClient, type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleDatabase } from "../../../../test/kit/databases/examples.ts";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { dropSecretData } from "../../projects/secrets.ts";
import { AUTHORITY, Authority } from "./authority.ts";
import { SERVER_DAYS, serialOf } from "./certificates.ts";
import { certificateNames, ensureCertificate } from "./secret.ts";

const SYSTEM = "slipway-system";
const DAY_MS = 86_400_000;
const owner = {
  type: "postgresql",
  id: "shop",
  namespace: "slipway-org-alpha",
  organizationId: "alpha",
} as const;
const names = certificateNames("shop", owner.namespace, "192.0.2.1");
let fake: FakeApiserver;
let client: KubeClient;
let clock: FakeClock;
let secrets: Store;
let authority: Authority;

beforeEach(async () => {
  fake = await FakeApiserver.start();
  client = KubeClient.forUrl(fake.url);
  clock = new FakeClock(new Date().toISOString());
  secrets = new Store({ transform: dropSecretData });
  authority = new Authority({ client, clock, namespace: SYSTEM });
});
afterEach(async () => {
  await client.close();
  await fake.down();
});

type Data = KubernetesObject & { data?: Record<string, string>; immutable?: boolean };
const writes = () => fake.requests.filter(({ method }) => method !== "GET").length;
const ensure = (of: readonly string[] = names, by = authority) =>
  ensureCertificate(
    exampleDatabase(),
    owner,
    of,
    { client, clock, secrets, authority: by },
    AbortSignal.timeout(20_000),
  );

describe("the authority of the databases", () => {
  test("is created once, and everybody may read its certificate", async () => {
    const { certificate } = await authority.current();
    const again = new Authority({ client, clock, namespace: SYSTEM });
    expect((await again.current()).certificate).toBe(certificate);
    const map = await client.get<Data>(resources.configMaps, { namespace: SYSTEM, name: AUTHORITY });
    expect(map.data?.["ca.crt"]).toBe(certificate);
    expect(JSON.stringify(map)).not.toContain("PRIVATE");
  });

  test("fills the Secret that the chart has created, once, also when another process does so meanwhile", async () => {
    const metadata = { namespace: SYSTEM, name: AUTHORITY, labels: { of: "the chart" } };
    for (const resource of [resources.secrets, resources.configMaps]) {
      await client.create(resource, { metadata });
    }
    const others = Array.from({ length: 3 }, () => new Authority({ client, clock, namespace: SYSTEM }));
    const pairs = await Promise.all(others.map((one) => one.current()));
    expect(new Set(pairs.map(({ key }) => key)).size).toBe(1);
    const secret = await client.get<Data>(resources.secrets, { namespace: SYSTEM, name: AUTHORITY });
    expect(secret).toMatchObject({ immutable: true, metadata: { labels: { of: "the chart" } } });
    const map = await client.get<Data>(resources.configMaps, { namespace: SYSTEM, name: AUTHORITY });
    expect(map).toMatchObject({
      data: { "ca.crt": pairs[0]?.certificate },
      metadata: { labels: metadata.labels },
    });
  });

  test("is tried again after a failure", async () => {
    fake.failNext(({ method }) => method === "POST", { status: 500 });
    await expect(authority.current()).rejects.toThrow();
    await expect(authority.current()).resolves.toMatchObject({ key: expect.stringContaining("PRIVATE") });
  });
});

describe("the certificate of a database", () => {
  test("is signed once", async () => {
    const { serial } = await ensure();
    const before = writes();
    expect(await ensure()).toMatchObject({ serial });
    expect(writes()).toBe(before);
    const secret = await client.get<Data>(resources.secrets, {
      namespace: owner.namespace,
      name: "shop-tls",
    });
    const text = (key: string) => Buffer.from(secret.data?.[key] ?? "", "base64").toString("utf8");
    expect(serialOf(text("tls.crt"))).toBe(serial);
    expect(text("ca.crt")).toBe((await authority.current()).certificate);
    expect(secret.metadata?.ownerReferences?.[0]?.uid).toBe("2f1c");
  });

  test("is renewed while a third of its life is left, for other names, and by another authority", async () => {
    const first = await ensure();
    await clock.advance((SERVER_DAYS * 2 * DAY_MS) / 3 + DAY_MS);
    const second = await ensure();
    const third = await ensure([...names, "db.example.com"]);
    await client.delete(resources.secrets, { namespace: SYSTEM, name: AUTHORITY });
    const fourth = await ensure(names, new Authority({ client, clock, namespace: SYSTEM }));
    expect(new Set([first, second, third, fourth].map(({ serial }) => serial)).size).toBe(4);
  });

  test("does not take the place of somebody else's Secret", async () => {
    await client.create(resources.secrets, { metadata: { namespace: owner.namespace, name: "shop-tls" } });
    await expect(ensure()).rejects.toThrow("belongs to somebody else");
  });
});
