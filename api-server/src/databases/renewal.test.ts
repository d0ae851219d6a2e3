import { resources } from "@slipway/controller-runtime";
import {
  credentialKeys,
  credentialsHash,
  databaseNames,
  organizationNamespace,
  type Project,
} from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseSpec, databaseStatus } from "../../../test/kit/api-server/databases.ts";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import type { Failure } from "../errors/failure.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { projectResource } from "../resources.ts";
import { decodeCredentials, encodeCredentials, readCredentialsSecret } from "./connection.ts";
import { renewCredentials } from "./renewal.ts";

const NAMESPACE = organizationNamespace("acme");
const before = { username: "app", database: "app", password: "old", "monitor-password": "m" };

let harness: FakeHarness;
beforeAll(async () => {
  harness = await startFakeHarness();
});
afterAll(() => harness.close());

const ref = (name: string) => ({ namespace: NAMESPACE, name });
const patch = (name: string, change: object) =>
  harness.kube.patch<Project>(projectResource, ref(name), change, { subresource: "status" });
const secretOf = async (name: string) =>
  decodeCredentials((await readCredentialsSecret(harness.kube, ref(name))) ?? {});

/** A database that works, with its Secret. */
async function database(name: string, change: Partial<Project["spec"]> = {}): Promise<ApiProject> {
  const project = await harness.put("acme", name, databaseSpec("postgresql", change));
  const metadata = ref(databaseNames(name).credentials);
  await harness.kube.create(resources.secrets, { metadata, data: encodeCredentials(before) } as object);
  await patch(name, {
    status: { database: databaseStatus(project, { credentialsHash: credentialsHash(before) }) },
  });
  return eventually(`database ${name}`, () =>
    harness.projects.list("acme").find(({ id, resource }) => id === name && resource.status?.database),
  );
}

/** The operator's part: the content of the Secret is in force. */
async function takeOver(name: string): Promise<void> {
  const credentialsHashNow = credentialsHash(await secretOf(name));
  const secret = databaseNames(name).credentials;
  const data = { [credentialKeys.previousPassword]: null };
  await harness.kube.patch(resources.secrets, ref(secret), { data });
  await patch(name, { status: { database: { credentialsHash: credentialsHashNow } } });
}

const refusal = (renewal: Promise<unknown>) =>
  renewal.then(
    () => "nothing",
    (error: Failure) => [error.status, error.code],
  );

describe("a renewal", () => {
  // Shows: docs/databases-api.md#passwords: a renewal answers once the engine has the new password; open
  it("shows the new password once it is in force, and keeps the old one until then", async () => {
    const project = await database("pone");
    const renewal = renewCredentials(project, harness.services, { limitMs: 5_000 });
    const pending = await eventually("a new password", async () => {
      const secret = await secretOf("pone");
      return secret.password === "old" ? undefined : secret;
    });
    expect(pending).toEqual({
      ...before,
      password: expect.stringMatching(/^[A-Za-z0-9]{32}$/),
      "previous-password": "old",
    });
    await takeOver("pone");
    const { connection } = await renewal;
    expect(connection.password).toBe(pending.password);
    expect(connection.connectionString).toContain(`:${pending.password}@`);
  });

  // Shows: docs/databases-api.md#passwords: 503 `DATABASE_CREDENTIALS_PENDING` after 30 seconds: the
  it("that is not in force in time is 503, and the next one waits for the same password", async () => {
    const project = await database("ptwo");
    const late = renewCredentials(project, harness.services, { limitMs: 200 });
    expect(await refusal(late)).toEqual([503, "DATABASE_CREDENTIALS_PENDING"]);
    const { password } = await secretOf("ptwo");
    const again = renewCredentials(project, harness.services, { limitMs: 5_000 });
    await takeOver("ptwo");
    expect((await again).connection.password).toBe(password);
    const third = renewCredentials(project, harness.services, { limitMs: 200 });
    expect(await refusal(third)).toEqual([503, "DATABASE_CREDENTIALS_PENDING"]);
    expect((await secretOf("ptwo")).password).not.toBe(password);
  });

  it("that the Secret has as taken over, but no status yet, is waited for by the next one", async () => {
    const project = await database("peight");
    const late = renewCredentials(project, harness.services, { limitMs: 200 });
    expect(await refusal(late)).toEqual([503, "DATABASE_CREDENTIALS_PENDING"]);
    const { password } = await secretOf("peight");
    const data = {
      [credentialKeys.previousPassword]: null,
      ...encodeCredentials({ "kept-password": "old" }),
    };
    await harness.kube.patch(resources.secrets, ref(databaseNames("peight").credentials), { data });
    const again = renewCredentials(project, harness.services, { limitMs: 200 });
    expect(await refusal(again)).toEqual([503, "DATABASE_CREDENTIALS_PENDING"]);
    const expected = { ...before, password, "kept-password": "old" };
    expect(await secretOf("peight")).toEqual(expected);
    const revoking = renewCredentials(project, harness.services, { limitMs: 5_000, revokePrevious: true });
    await eventually("the mark", async () => (await secretOf("peight"))["revoke-previous"]);
    expect(await secretOf("peight")).toEqual({ ...expected, "revoke-previous": "true" });
    await takeOver("peight");
    expect((await revoking).connection.password).toBe(password);
  });

  // Shows: docs/databases-api.md#passwords: `revoke_previous: true` in the body
  it("that is to revoke the previous password says so in the Secret, also of one that is pending", async () => {
    const project = await database("pseven");
    const pending = renewCredentials(project, harness.services, { limitMs: 200 });
    expect(await refusal(pending)).toEqual([503, "DATABASE_CREDENTIALS_PENDING"]);
    const { password } = await secretOf("pseven");
    const options = { revokePrevious: true, limitMs: 200 };
    expect(await refusal(renewCredentials(project, harness.services, options))).toEqual([
      503,
      "DATABASE_CREDENTIALS_PENDING",
    ]);
    const expected = { ...before, password, "previous-password": "old", "revoke-previous": "true" };
    expect(await secretOf("pseven")).toEqual(expected);
  });

  it("revokes nothing because one before it was to, whose mark is left", async () => {
    const project = await database("pnine");
    const data = encodeCredentials({ "revoke-previous": "true" });
    await harness.kube.patch(resources.secrets, ref(databaseNames("pnine").credentials), { data });
    const late = renewCredentials(project, harness.services, { limitMs: 200 });
    expect(await refusal(late)).toEqual([503, "DATABASE_CREDENTIALS_PENDING"]);
    const { password = "" } = await secretOf("pnine");
    expect(await secretOf("pnine")).toEqual({ ...before, password, "previous-password": "old" });
  });

  // Shows: docs/databases-api.md#passwords: concurrent renewals result in one password
  it("of many concurrent calls is one", async () => {
    const project = await database("pthree");
    const many = Promise.all(
      Array.from({ length: 10 }, () => renewCredentials(project, harness.services, { limitMs: 5_000 })),
    );
    await eventually("a new password", async () => (await secretOf("pthree")).password !== "old");
    // Those that come late wait for the same.
    await new Promise((resolve) => setTimeout(resolve, 300));
    await takeOver("pthree");
    expect(new Set((await many).map(({ connection }) => connection.password)).size).toBe(1);
  });

  // Shows: docs/databases-api.md#passwords: 409 `PROJECT_PAUSED`: the password of a paused database
  it("of a paused database is 409, and changes nothing", async () => {
    const project = await database("pfour", { paused: true });
    expect(await refusal(renewCredentials(project, harness.services))).toEqual([409, "PROJECT_PAUSED"]);
    expect(await secretOf("pfour")).toEqual(before);
  });

  // Shows: docs/databases-api.md#passwords: 503 `DATABASE_CREDENTIALS_PENDING` while there is no
  it("of a database without an address is 503, and changes nothing", async () => {
    await database("pfive");
    await patch("pfive", { status: { database: { host: null, port: null, inside: null } } });
    const project = await eventually("no address", () =>
      harness.projects
        .list("acme")
        .find(({ id, resource }) => id === "pfive" && !resource.status?.database?.host),
    );
    const refused = [503, "DATABASE_CREDENTIALS_PENDING"];
    expect(await refusal(renewCredentials(project, harness.services))).toEqual(refused);
    expect(await secretOf("pfive")).toEqual(before);
  });

  it("without a cluster is 503 CLUSTER_UNAVAILABLE", async () => {
    const project = await database("psix");
    harness.apiserver.failNext(({ method, path }) => method === "PATCH" && path.includes("/secrets/"), {
      status: 500,
      times: 10,
    });
    const refused = await refusal(renewCredentials(project, harness.services));
    expect(refused).toEqual([503, "CLUSTER_UNAVAILABLE"]);
  });
});
