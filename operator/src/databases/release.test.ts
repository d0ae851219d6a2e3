import type { KubeClient, KubernetesObject, ObjectRef } from "@slipway/controller-runtime";
import { annotations } from "@slipway/crds";
import { silentLogger } from "@slipway/process";
import { describe, expect, test } from "vitest";
import {
  databaseOf,
  exampleCredentials,
  exampleDatabase,
  liveOf,
  podOf,
} from "../../../test/kit/databases/examples.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import type { LiveClaim, LiveDatabase } from "./driver.ts";
import { planMembers } from "./members.ts";
import { type ReleaseContext, releaseMembers } from "./release.ts";

const NOW = "2026-03-02T00:00:00Z";
const DAY_MS = 86_400_000;
const YESTERDAY = "2026-03-01T00:00:00Z";

interface ClaimShape {
  unusedSince?: string;
  keep?: string;
  phase?: string;
  deleting?: boolean;
}

function claim(ordinal: number, shape: ClaimShape = {}): LiveClaim {
  const { unusedSince, keep, phase = "Bound", deleting = false } = shape;
  return {
    metadata: {
      name: `data-shop-${ordinal}`,
      namespace: "slipway-org-alpha",
      uid: `claim-${ordinal}`,
      annotations: {
        ...(unusedSince === undefined ? {} : { [annotations.unusedSince]: unusedSince }),
        ...(keep === undefined ? {} : { [annotations.keep]: keep }),
      },
      ...(deleting ? { deletionTimestamp: YESTERDAY } : {}),
    },
    status: { phase },
  };
}

const primary = { role: "primary" } as const;
const replica = { role: "replica" } as const;

/** A database as the watches report it, whose StatefulSet requests so many. */
const live = (running: number, pods: LiveDatabase["pods"], claims: LiveClaim[]): LiveDatabase => ({
  ...liveOf(pods, { claims }),
  statefulSet: { metadata: { name: "shop", namespace: "slipway-org-alpha" }, spec: { replicas: running } },
});

describe("the members of a database", () => {
  const three = [claim(0), claim(1), claim(2)];
  const marked = { unusedSince: YESTERDAY };

  test("whose instances were reduced while it was paused are all started again", () => {
    expect(planMembers(1, true, live(0, [], three))).toEqual({ replicas: 0, members: 3 });
    expect(planMembers(1, false, live(0, [], three))).toEqual({ replicas: 3, members: 3 });
    expect(planMembers(1, false, { pods: [], claims: three })).toEqual({ replicas: 3, members: 3 });
  });

  test("stay until they are released, also where the primary is one of those that stay", () => {
    for (const pods of [[podOf(0, primary)], [podOf(0), podOf(1, primary)]]) {
      expect(planMembers(1, false, live(3, pods, three))).toEqual({ replicas: 3, members: 3 });
    }
  });

  test("that were stopped start again when no instance is the primary before their volumes are marked", () => {
    expect(planMembers(1, false, live(1, [podOf(0, primary)], three))).toEqual({ replicas: 1, members: 3 });
    expect(planMembers(1, false, live(1, [podOf(0)], three))).toEqual({ replicas: 3, members: 3 });
  });

  test("whose volumes are marked, were never bound or are being deleted are not needed", () => {
    for (const shape of [marked, { phase: "Pending" }, { phase: "Lost" }, { deleting: true }]) {
      const claims = [claim(0), claim(1, shape), claim(2, shape)];
      expect(planMembers(1, false, live(0, [], claims)), JSON.stringify(shape)).toEqual({
        replicas: 1,
        members: 1,
      });
    }
  });

  test("start from old data only after the one that has the new ones", () => {
    const claims = [claim(0), claim(1, marked), claim(2, marked)];
    expect(planMembers(3, false, live(0, [], claims))).toEqual({ replicas: 1, members: 1 });
    expect(planMembers(3, false, live(1, [podOf(0, primary)], claims))).toEqual({ replicas: 1, members: 1 });
    expect(planMembers(3, false, live(1, [podOf(0, primary)], [claim(0)]))).toEqual({
      replicas: 3,
      members: 3,
    });
  });

  test("of a new database, or of one that keeps nothing, are those that are requested", () => {
    expect(planMembers(3, false, { pods: [], claims: [] })).toEqual({ replicas: 3, members: 3 });
    expect(planMembers(1, false, live(0, [], []))).toEqual({ replicas: 1, members: 1 });
  });
});

/** Releases what a project of so many instances does not request. @returns what was done, in words */
async function release(
  instances: number,
  seen: LiveDatabase,
  more: { complete?: boolean | Error; pods?: readonly string[]; claims?: LiveClaim[]; paused?: boolean } = {},
) {
  const { complete = true, pods = [], claims = seen.claims, paused = false } = more;
  const done: string[] = [];
  const events: string[] = [];
  const client = {
    patch: async ({ kind }: { kind: string }, { name }: ObjectRef, patch: KubernetesObject) => {
      if (kind === "StatefulSet") {
        done.push(`${name} has ${(patch as { spec?: { replicas?: number } }).spec?.replicas}`);
      } else {
        done.push(`${name} unused since ${patch.metadata?.annotations?.[annotations.unusedSince]}`);
      }
      return patch;
    },
    delete: async (_: unknown, { name }: ObjectRef) => done.push(`delete ${name}`),
    getOrUndefined: async ({ kind }: { kind: string }, { name }: ObjectRef) =>
      kind === "Pod"
        ? pods.includes(name)
          ? {}
          : undefined
        : claims.find((one) => one.metadata?.name === name),
  } as unknown as KubeClient;
  const context: ReleaseContext = {
    client,
    clock: new FakeClock(NOW),
    log: silentLogger,
    signal: AbortSignal.timeout(5_000),
    credentials: exampleCredentials,
    authority: "",
    certificate: { serial: "01", signedAt: new Date(NOW) },
    status: {},
    event: (_, reason) => events.push(reason),
    queryMember: (_pod, question) => question(),
    wake: () => {},
    volumeGraceMs: DAY_MS,
    observe: () => done.push("observed"),
  };
  const database = { ...databaseOf({ project: exampleDatabase({ instances }) }), paused };
  const driver = {
    isCaughtUp: async () => {
      done.push("asked");
      if (complete instanceof Error) {
        throw complete;
      }
      return complete;
    },
  };
  const requeueAfterMs = await releaseMembers(database, seen, driver, context);
  return { done, events, requeueAfterMs };
}

describe("members that are no longer requested", () => {
  const three = [claim(0), claim(1), claim(2)];
  const pods = [podOf(0, primary), podOf(1, replica), podOf(2, replica)];

  test("stop once one that stays has everything", async () => {
    const { done, requeueAfterMs } = await release(1, live(3, pods, three));
    expect(done).toEqual(["asked", "shop has 1", "observed"]);
    expect(requeueAfterMs).toBe(3_000);
  });

  test.each([false, new Error("the primary does not answer")])("stay otherwise: %s", async (complete) => {
    for (const seen of [live(3, pods, three), live(1, [podOf(0, primary)], three)]) {
      expect(await release(1, seen, { complete })).toMatchObject({ done: ["asked"], requeueAfterMs: 3_000 });
    }
  });

  test("leave volumes that are marked before anything else, the last one first", async () => {
    const { done, events, requeueAfterMs } = await release(1, live(1, [podOf(0, primary)], three));
    expect(done).toEqual([
      "asked",
      "data-shop-2 unused since 2026-03-02T00:00:00.000Z",
      "data-shop-1 unused since 2026-03-02T00:00:00.000Z",
    ]);
    expect(events).toEqual(["VolumeUnused", "VolumeUnused"]);
    expect(requeueAfterMs).toBeUndefined();
  });

  test("leave volumes alone that a pod still uses, seen or not", async () => {
    const seen = live(1, [podOf(0, primary), podOf(1, { deleting: true })], three);
    expect(await release(1, seen, { pods: ["shop-2"] })).toMatchObject({
      done: ["asked"],
      requeueAfterMs: 3_000,
    });
  });

  test("are asked nothing while the project is paused", async () => {
    const old = [claim(0), claim(1, { unusedSince: "2026-01-01T00:00:00Z" })];
    expect((await release(1, live(0, [], old), { paused: true })).done).toEqual([]);
  });
});

describe("a volume that is marked as unused", () => {
  const serving = (claims: LiveClaim[]) => live(1, [podOf(0, primary)], claims);
  const at = (unusedSince: string, keep?: string) => serving([claim(0), claim(1, { unusedSince, keep })]);

  test("is deleted after its time, and not before", async () => {
    const { done, events } = await release(1, at(YESTERDAY));
    expect(done).toEqual(["asked", "delete data-shop-1"]);
    expect(events).toEqual(["VolumeDeleted"]);
    const early = await release(1, at("2026-03-01T00:00:01Z"));
    expect(early).toMatchObject({ done: [], requeueAfterMs: 1_000 });
  });

  test("stays while the primary does not have everything", async () => {
    expect((await release(1, at(YESTERDAY), { complete: false })).done).toEqual(["asked"]);
  });

  test("stays where it is to be kept, also where that has not been seen yet", async () => {
    expect((await release(1, at(YESTERDAY, ""))).done).toEqual([]);
    const claims = [claim(1, { unusedSince: YESTERDAY, keep: "yes" })];
    expect((await release(1, at(YESTERDAY), { claims })).done).toEqual(["asked"]);
    const unmarked = [claim(1)];
    expect((await release(1, at(YESTERDAY), { claims: unmarked })).done).toEqual(["asked"]);
  });

  test("is created again when it is needed again, for its data are old; one that is kept is used as it is", async () => {
    const recently = "2026-03-01T23:59:00Z";
    expect((await release(2, at(recently))).done).toEqual(["asked", "delete data-shop-1"]);
    expect((await release(2, at(recently), { complete: false })).done).toEqual(["asked"]);
    expect((await release(2, at(recently, "yes"))).done).toEqual(["asked", "data-shop-1 unused since null"]);
  });
});
