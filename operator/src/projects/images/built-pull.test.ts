import { generateKeyPairSync } from "node:crypto";
import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { BuiltPull } from "./built-pull.ts";

const namespace = "slipway-org-alpha";
const ref = { namespace, name: "slipway-builds-registry" };
const DAY = 86_400_000;
const signal = new AbortController().signal;
const pem = () =>
  generateKeyPairSync("ec", { namedCurve: "P-256" })
    .privateKey.export({ type: "pkcs8", format: "pem" })
    .toString();

let api: FakeApiserver;
let client: KubeClient;
let clock: FakeClock;
let key: string;
let pull: BuiltPull;

type Secret = KubernetesObject & { type: string; data: Record<string, string> };
const secret = () => client.get<Secret>(resources.secrets, ref);
const passwordOf = ({ data }: Secret) => {
  const config = JSON.parse(Buffer.from(data[".dockerconfigjson"] ?? "", "base64").toString());
  return config.auths["builds.example"].password as string;
};
const ensure = () => pull.ensure({ namespace, organizationId: "alpha" }, signal);
const again = () => new BuiltPull({ client, clock, host: () => "builds.example", registryKey: () => key });

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  clock = new FakeClock();
  key = pem();
  pull = again();
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

test("nodes are given a password of their organization, which is kept until it is old", async () => {
  expect(await ensure()).toBe(15 * DAY);
  const made = await secret();
  expect(made.type).toBe("kubernetes.io/dockerconfigjson");
  const claims = JSON.parse(Buffer.from(passwordOf(made).split(".")[1] ?? "", "base64url").toString());
  expect(claims).toMatchObject({ aud: "slipway-registry-pull", org: "alpha" });
  expect(claims.exp * 1_000).toBeGreaterThan(clock.now().getTime() + 29 * DAY);

  // Another process finds it.
  pull = again();
  await clock.advance(DAY);
  expect(await ensure()).toBe(14 * DAY);
  expect(passwordOf(await secret())).toBe(passwordOf(made));

  await clock.advance(14 * DAY);
  expect(await ensure()).toBe(15 * DAY);
  expect(passwordOf(await secret())).not.toBe(passwordOf(made));
});

test("one that was deleted is created again, and so is one of another key", async () => {
  await ensure();
  const before = passwordOf(await secret());
  await client.delete(resources.secrets, ref);
  await clock.advance(301_000);
  await ensure();
  const after = passwordOf(await secret());
  expect(after).not.toBe(before);
  key = pem();
  await ensure();
  expect(passwordOf(await secret())).not.toBe(after);
});

test("a Secret of that name that is somebody else's is left alone", async () => {
  const theirs = { apiVersion: "v1", kind: "Secret", metadata: ref, data: { a: "Yg==" } };
  await client.create(resources.secrets, theirs as KubernetesObject);
  await expect(ensure()).rejects.toThrow("in the way");
  expect((await secret()).data).toEqual({ a: "Yg==" });
});
