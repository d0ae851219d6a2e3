import { KubeClient, type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { exampleDatabase } from "../../../test/kit/databases/examples.ts";
import { dropSecretData } from "../projects/secrets.ts";
import { Credentials } from "./credentials.ts";

const signal = AbortSignal.timeout(20_000);
const project: Project = exampleDatabase();
const ref = { namespace: "slipway-org-alpha", name: "shop-credentials" };
let fake: FakeApiserver;
let client: KubeClient;
let secrets: Store;
let credentials: Credentials;

beforeEach(async () => {
  fake = await FakeApiserver.start();
  client = KubeClient.forUrl(fake.url);
  secrets = new Store({ transform: dropSecretData });
  credentials = new Credentials({ client, secrets });
});
afterEach(async () => {
  await client.close();
  await fake.down();
});

type Secret = KubernetesObject & { data?: Record<string, string> };
const live = () => client.get<Secret>(resources.secrets, ref);
const ensure = () => credentials.ensure(project, "postgresql", "alpha", signal);
const base64 = (text: string) => Buffer.from(text).toString("base64");
const writes = () => fake.requests.filter(({ method }) => method !== "GET").length;

describe("the credentials of a database", () => {
  test("are created once, for the project alone", async () => {
    const created = await ensure();
    const secret = await live();
    expect(secret.metadata?.ownerReferences?.[0]).toMatchObject({
      kind: "Project",
      name: "shop",
      uid: "2f1c",
    });
    expect(secret.metadata?.labels?.["slipway.dev/project"]).toBe("shop");
    expect(await ensure()).toEqual(created);
    expect(await new Credentials({ client, secrets }).ensure(project, "postgresql", "alpha", signal)).toEqual(
      created,
    );
    expect(writes()).toBe(1);
  });

  test("that somebody has begun are completed and kept", async () => {
    const data = { username: base64("shop"), password: base64("chosen by its owner") };
    await client.create<Secret>(resources.secrets, { metadata: ref, data });
    const whole = await ensure();
    expect(whole).toMatchObject({ username: "shop", password: "chosen by its owner", database: "app" });
    const secret = await live();
    expect(secret.data?.password).toBe(data.password);
    expect(secret.metadata?.ownerReferences?.[0]?.uid).toBe("2f1c");
  });

  test("of another one are left alone", async () => {
    const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "x", uid: "other", controller: true }];
    await client.create<Secret>(resources.secrets, { metadata: { ...ref, ownerReferences }, data: {} });
    await expect(ensure()).rejects.toThrow("belongs to somebody else");
  });

  test("keep or lose the password before a renewal once the new one is in force", async () => {
    await ensure();
    const data = { password: base64("new"), "previous-password": base64("old") };
    secrets.observe(await client.patch<Secret>(resources.secrets, ref, { data }));
    const renewed = await ensure();
    expect(renewed).toMatchObject({ password: "new", "previous-password": "old" });
    const change = { "previous-password": null, "kept-password": "old" };
    await credentials.changeEarlier(project, change, signal);
    const { data: left } = await live();
    expect(left?.password).toBe(data.password);
    expect(left?.["previous-password"]).toBeUndefined();
    expect(left?.["kept-password"]).toBe(base64("old"));
    // What was written is known, without a read or an event.
    expect(await ensure()).toMatchObject({ password: "new", "kept-password": "old" });
    // A content that another process has written was not decided about.
    await client.patch<Secret>(resources.secrets, ref, { data: { password: base64("newer") } });
    await expect(credentials.changeEarlier(project, { "kept-password": null }, signal)).rejects.toThrow();
    expect((await live()).data?.["kept-password"]).toBe(base64("old"));
  });
});
