import { KubeClient, type KubernetesObject, resources, Store } from "@slipway/controller-runtime";
import { credentialsHash, type DatabaseStatus, hashWithPassword } from "@slipway/crds";
import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { databaseOf, exampleDatabase, liveOf } from "../../../test/kit/databases/examples.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import type { ProjectContext } from "../projects/kind.ts";
import { dropSecretData } from "../projects/secrets.ts";
import { mustSetPassword, passwordsHash, passwordsIn } from "./common/setup.ts";
import { Credentials } from "./credentials.ts";
import type { DatabaseDriver } from "./driver.ts";
import { statusOf } from "./findings.ts";
import { reconcileAndRestore } from "./reconcile-and-restore.ts";

/** A renewal as a database's reconciles carry it out, whichever of their steps is the last of a process. */

const DAY_MS = 86_400_000;
const project = exampleDatabase();
const ref = { namespace: project.metadata.namespace ?? "", name: "shop-credentials" };
const encoded = (values: Record<string, string | null>) =>
  Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, value && Buffer.from(value).toString("base64")]),
  );

/** Between which of its writes a process is killed. */
const MOMENTS = ["before the engine", "after the engine", "after the Secret", "never"] as const;
type Moment = (typeof MOMENTS)[number];

let api: FakeApiserver;
let client: KubeClient;
let clock: FakeClock;
let status: DatabaseStatus;
/** What the engine accepts, and how often it was set. */
let accepted: string[];
let logins: number;
let events: string[];
/** Passwords that something was started with. */
let used: string[];
/** Whether what uses a password can be read. */
let isAnswered: boolean;
let requeueAfterMs: number | undefined;
/** Hash of what the engine was set up with: a driver's memory, or the status. */
let setUp: string | undefined;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  clock = new FakeClock("2026-03-01T00:00:00Z");
  [status, accepted, logins, events, used, setUp] = [{}, [], 0, [], [], undefined];
  isAnswered = true;
});
afterEach(async () => {
  await client.close();
  await api.stop();
});

class Killed extends Error {}

function driver(moment: Moment): DatabaseDriver {
  return {
    name: "mariadb",
    port: 3306,
    desired: () => [],
    isCaughtUp: async () => true,
    reconcile: async (database, _live, context) => {
      if (moment === "before the engine") {
        throw new Killed();
      }
      const key = passwordsHash(database, context);
      if (setUp !== key) {
        logins += 1;
        accepted = mustSetPassword(database, context) ? passwordsIn(context.credentials) : accepted;
        setUp = key;
      }
      if (moment === "after the engine") {
        // Nothing of it was recorded.
        setUp = undefined;
        throw new Killed();
      }
      return { primary: "shop-0", credentialsHash: database.credentialsHash };
    },
  };
}

/** One reconcile of a process that has just been started, or of one that goes on. */
async function reconcile(moment: Moment = "never"): Promise<void> {
  const secrets = new Store({ transform: dropSecretData });
  secrets.replace(await client.listAll<KubernetesObject>(resources.secrets, ref), "0");
  const own = new Credentials({ client, secrets });
  const signal = AbortSignal.timeout(10_000);
  const credentials = await own.ensure(project, "mariadb", "alpha", signal);
  const database = { ...databaseOf({ project }), credentialsHash: credentialsHash(credentials) };
  const live = liveOf([]);
  const context = {
    status: { database: status },
    log: silentLogger,
    signal,
    event: (_: string, reason: string) => events.push(reason),
  } as unknown as ProjectContext;
  const certificate = { serial: "01", signedAt: new Date() };
  const hashes = new Set(used.map((password) => hashWithPassword(credentials, password)));
  const deps = {
    authority: { current: async () => ({ certificate: "" }) },
    client,
    clock,
    driver: driver(moment),
    isPasswordUsed: async (hash: string) => {
      if (!isAnswered) {
        throw new Error("the apiserver does not answer");
      }
      return hashes.has(hash);
    },
    members: { clientFor: () => client, run: (_: unknown, query: () => unknown) => query() },
    observe: () => {},
    platform: { previousPasswordMs: DAY_MS, volumeGraceMs: DAY_MS },
    restorer: { restore: async () => undefined },
    secrets: own,
    wake: () => {},
  } as unknown as Parameters<typeof reconcileAndRestore>[4];
  const applied = { database, credentials, certificate };
  const clusterState = await reconcileAndRestore(project, applied, live, context, deps);
  requeueAfterMs = clusterState.requeueAfterMs;
  if (moment === "after the Secret") {
    setUp = undefined;
    throw new Killed();
  }
  const found = {
    database,
    driver: { port: 3306 },
    live,
    clusterState,
    full: [],
    credentials,
    now: clock.now(),
  };
  status = statusOf(found, status);
}

/** A process that is killed at a moment, and the next ones. */
async function reconcileThrough(moment: Moment): Promise<void> {
  await reconcile(moment).catch((error: unknown) => {
    if (!(error instanceof Killed)) {
      throw error;
    }
  });
  await reconcile();
  await reconcile();
}

const secret = async () => {
  const { data = {} } = await client.get<KubernetesObject & { data?: Record<string, string> }>(
    resources.secrets,
    ref,
  );
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
  );
};
const renew = (password: string, previous: string, more: Record<string, string> = {}) =>
  client.patch(resources.secrets, ref, {
    data: encoded({ password, "previous-password": previous, ...more }),
  });
const earlier = async () =>
  Object.keys(await secret())
    .filter((key) => /previous|kept/.test(key))
    .sort();

async function start(): Promise<void> {
  await client.create(resources.secrets, {
    metadata: ref,
    data: encoded({ password: "one" }),
  } as KubernetesObject);
  await reconcile();
  expect(accepted).toEqual(["one"]);
  used = ["one"];
}

test.each(MOMENTS)(
  "a renewal is kept, and its end carried out, by a process that is killed %s",
  async (moment) => {
    await start();
    await renew("two", "one");
    await reconcileThrough(moment);
    expect(accepted).toEqual(["two", "one"]);
    expect(await earlier()).toEqual(["kept-password", "kept-until"]);
    expect(status.previousPassword).toEqual({ until: "2026-03-02T00:00:00.000Z" });
    expect(JSON.stringify(status)).not.toMatch(/"(one|two)"/);

    used = ["two"];
    await reconcileThrough(moment);
    expect(accepted).toEqual(["two"]);
    expect(await earlier()).toEqual([]);
    expect(status.previousPassword).toBeUndefined();
    expect(events).toEqual(["PreviousPasswordRevoked"]);
  },
);

test.each(MOMENTS)(
  "a renewal after one that a process carried out that was killed %s keeps the password that instances have",
  async (moment) => {
    await start();
    await renew("two", "one");
    await reconcile(moment).catch(() => {});
    // Nothing was given `two`. One that is pending is waited for, and not renewed.
    const isPending = (await secret())["previous-password"] !== undefined;
    if (!isPending) {
      await renew("three", "two");
    }
    await reconcileThrough(moment);
    expect(accepted).toEqual([isPending ? "two" : "three", "one"]);
    expect(await earlier()).toEqual(["kept-password", "kept-until"]);
    expect(events).toEqual([]);
  },
);

test("a database whose previous password is kept, or has ended, is neither written nor logged in to again", async () => {
  await start();
  await renew("two", "one");
  for (const now of [["one"], ["two"]]) {
    used = now;
    await reconcile();
    await reconcile();
    const [before, writes, seen] = [
      logins,
      api.requests.filter(({ method }) => method !== "GET").length,
      status,
    ];
    await reconcile();
    expect(logins).toBe(before);
    expect(api.requests.filter(({ method }) => method !== "GET").length).toBe(writes);
    expect(status).toEqual(seen);
  }
});

// Shows: docs/references.md#renewing-a-password: the previous password is refused by the engine
test("a previous password ends when its time is over, though something still has it", async () => {
  await start();
  await renew("two", "one");
  await reconcile();
  await clock.advance(DAY_MS - 1);
  await reconcile();
  expect(accepted).toEqual(["two", "one"]);
  await clock.advance(1);
  await reconcile();
  expect(accepted).toEqual(["two"]);
  expect(events).toEqual(["PreviousPasswordExpired"]);
});

test("a previous password that ends in a moment is checked then, and not later", async () => {
  await start();
  await renew("two", "one");
  await reconcile();
  expect(requeueAfterMs).toBe(15_000);
  await clock.advance(DAY_MS - 400);
  await reconcile();
  expect(requeueAfterMs).toBe(400);
});

test("a previous password is accepted while what uses it cannot be read, until its time is over", async () => {
  await start();
  isAnswered = false;
  await renew("two", "one");
  await reconcile();
  expect(accepted).toEqual(["two", "one"]);
  await clock.advance(DAY_MS);
  await reconcile();
  expect(accepted).toEqual(["two"]);
});

test("an Event says that a password has ended once the Secret does, however often the write conflicts", async () => {
  await start();
  await renew("two", "one");
  await reconcile();
  used = [];
  api.failNext(({ method, path }) => method === "PATCH" && path.includes("/secrets/"), {
    status: 409,
    times: 1,
  });
  await expect(reconcile()).rejects.toThrow();
  expect(events).toEqual([]);
  await reconcile();
  expect(events).toEqual(["PreviousPasswordRevoked"]);
});

// Shows: docs/references.md#renewing-a-password: a renewal while a previous password is kept
// Shows: docs/references.md#renewing-a-password: `revoke_previous: true` in the body, as after a leak
test("another renewal ends the oldest, and one that revokes ends both", async () => {
  await start();
  await renew("two", "one");
  await reconcile();
  used = ["one", "two"];
  await renew("three", "two");
  await reconcile();
  expect(accepted).toEqual(["three", "two"]);
  used = ["one", "two", "three"];
  await renew("four", "three", { "revoke-previous": "true" });
  await reconcile();
  expect(accepted).toEqual(["four"]);
  expect(await earlier()).toEqual([]);
});

// Shows: docs/references.md#renewing-a-password: no project has it by reference
test("a password that nothing was started with by reference ends with the renewal", async () => {
  await start();
  used = [];
  await renew("two", "one");
  await reconcile();
  expect(accepted).toEqual(["two"]);
  expect(await earlier()).toEqual([]);
  expect(events).toEqual([]);
});

test("what an operator of an earlier version has left is ended by the next one", async () => {
  await start();
  await renew("two", "one");
  await reconcile();
  // That one writes a status without it, and leaves what it does not know in the Secret.
  status = { ...status, previousPassword: undefined };
  setUp = "by another script";
  used = [];
  await reconcile();
  expect(accepted).toEqual(["two"]);
  expect(await earlier()).toEqual([]);
});
