import { type Deployment, projectStatus } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import {
  advanceDeployment,
  beginDeployment,
  pauseDeployment,
  remainingMs,
  settingsOf,
  type WantedDeployment,
} from "./deployments.ts";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;

function wanted(settingsHash: string, image: { url?: string; digest?: string } = {}): WantedDeployment {
  return {
    settingsHash,
    settings: { plan: "basic", image: { url: "registry.example/app:1", isPublic: true, ...image } },
  };
}

function begin(list: readonly Deployment[], of: WantedDeployment, generation = 1, now = at(0)): Deployment[] {
  const begun = beginDeployment(list, of, { uid: "uid", generation, now });
  if (!begun) {
    throw new Error("no room");
  }
  return begun;
}

const succeed = (list: readonly Deployment[], found = digest("a")) =>
  advanceDeployment(list, { complete: true, digest: found }, at(9));
const fail = (list: readonly Deployment[]) =>
  advanceDeployment(list, { complete: false, failure: "Nothing answers." }, at(9));
const record = (list: readonly Deployment[]): Deployment[] =>
  list.map((each) => ({ ...each, recorded: each.status === "in_progress" ? "started" : "finished" }));
const states = (list: readonly Deployment[]) => list.map(({ status }) => status);

/** A list of this many deployments, the oldest first succeeded, the others failed. */
function history(length: number): Deployment[] {
  let list = record(succeed(begin([], wanted("0"))));
  for (let i = 1; i < length; i += 1) {
    list = record(fail(begin(list, wanted(String(i)), i)));
  }
  return list;
}

describe("a new deployment begins", () => {
  test("with the first settings, and fits the resource's schema", () => {
    const [first] = begin([], wanted("a", { digest: digest("b") }), 3);
    expect(first).toMatchObject({
      status: "in_progress",
      startedAt: "2026-01-01T00:00:00Z",
      generation: 3,
      settingsHash: "a",
      updatedImage: true,
      image: { reference: `registry.example/app:1@${digest("b")}`, digest: digest("b") },
    });
    const status = { deployments: JSON.parse(JSON.stringify(fail(begin(history(9), wanted("x"))))) };
    expect(projectStatus.safeParse(status).error).toBeUndefined();
  });

  test("with other settings, and ends the one under way", () => {
    const list = begin(begin([], wanted("a")), wanted("b"), 2, at(5));
    expect(states(list)).toEqual(["in_progress", "superseded"]);
    expect(list[1]?.finishedAt).toBe("2026-01-01T00:00:05Z");
  });

  test("not with the same settings, however it went, but what they were paid for follows", () => {
    for (const list of [
      begin([], wanted("a")),
      succeed(begin([], wanted("a"))),
      fail(begin([], wanted("a"))),
    ]) {
      const same = wanted("a");
      same.settings.paymentMode = "yearly";
      const after = begin(list, same, 2);
      expect(after).toEqual([{ ...list[0], settings: same.settings }]);
    }
  });

  test("with the same settings when a pause has cut them short", () => {
    const list = begin(pauseDeployment(begin([], wanted("a")), at(1)), wanted("a"));
    expect(states(list)).toEqual(["in_progress", "superseded"]);
  });

  test("under the same id when it is begun again, and another whenever settings come back", () => {
    const first = begin([], wanted("a"), 1, at(1));
    expect(begin([], wanted("a"), 1, at(7))[0]?.id).toBe(first[0]?.id);
    // The catalog changes plans without another generation.
    const third = begin(begin(first, wanted("b"), 1), wanted("a"), 1);
    expect(new Set(third.map(({ id }) => id)).size).toBe(3);
    const other = beginDeployment([], wanted("a"), { uid: "other", generation: 1, now: at(1) });
    expect(other?.[0]?.id).not.toBe(first[0]?.id);
  });

  test.each<[string, { url?: string; digest?: string }, boolean]>([
    ["the same image", {}, false],
    ["another tag", { url: "registry.example/app:2" }, true],
    ["the image pinned to what the tag led to", { digest: digest("a") }, false],
    ["the image pinned to something else", { digest: digest("b") }, true],
  ])("with %s", (_, image, updated) => {
    const list = begin(succeed(begin([], wanted("a"))), wanted("b", image), 2);
    expect(list[0]?.updatedImage).toBe(updated);
  });
});

describe("the list", () => {
  test("keeps ten, and forgets the oldest", () => {
    const list = begin(record(succeed(history(10))), wanted("new"), 99);
    expect(list).toHaveLength(10);
    expect(list.map(({ settingsHash }) => settingsHash)).toEqual([
      "new",
      "9",
      "8",
      "7",
      "6",
      "5",
      "4",
      "3",
      "2",
      "1",
    ]);
  });

  test("keeps the last that succeeded, whose instances serve, over any number of failures", () => {
    const list = history(30);
    expect(list).toHaveLength(10);
    expect(list.at(-1)).toMatchObject({ settingsHash: "0", status: "succeeded" });
  });

  test("forgets none that the ledger does not have, and accepts no more when it has none", () => {
    const unrecorded = history(10).map((each, index) =>
      index === 3 ? each : { ...each, recorded: "started" as const },
    );
    const list = begin(unrecorded, wanted("new"), 99);
    expect(list.map(({ settingsHash }) => settingsHash)).not.toContain("6");
    expect(list).toHaveLength(10);
    expect(beginDeployment(list, wanted("newer"), { uid: "uid", now: at(1) })).toBeUndefined();
    expect(begin(list, wanted("new"))).toHaveLength(10);
  });
});

describe("a deployment ends", () => {
  const underWay = record(begin([], wanted("a")));

  test("with success, and keeps the digest that its instances run", () => {
    expect(succeed(underWay)).toEqual([
      {
        ...underWay[0],
        status: "succeeded",
        finishedAt: "2026-01-01T00:00:09Z",
        image: { reference: "registry.example/app:1", digest: digest("a") },
      },
    ]);
  });

  test("with failure and its reason", () => {
    expect(fail(underWay)[0]).toMatchObject({
      status: "failed",
      message: "Nothing answers.",
      recorded: "started",
    });
  });

  test("once: what failed fails no more and what succeeded stays", () => {
    const failed = record(fail(underWay));
    expect(advanceDeployment(failed, { complete: false, failure: "Something else." }, at(20))).toEqual(
      failed,
    );
    const done = record(succeed(underWay));
    expect(fail(done)).toEqual(done);
    expect(advanceDeployment(done, { complete: true, digest: digest("b") }, at(20))).toEqual(done);
  });

  test("with success after all when it completes late, which is recorded again", () => {
    const [late] = succeed(record(fail(underWay)));
    expect(late).toMatchObject({ status: "succeeded", recorded: "started" });
    expect(late).not.toHaveProperty("message");
  });

  test("by a pause, which changes nothing of one that has ended", () => {
    expect(states(pauseDeployment(underWay, at(3)))).toEqual(["superseded"]);
    expect(pauseDeployment(fail(underWay), at(30))).toEqual(fail(underWay));
    expect(pauseDeployment([], at(3))).toEqual([]);
  });

  test("by its age only while it is under way", () => {
    expect(remainingMs(underWay[0], 10_000, at(4))).toBe(6_000);
    expect(remainingMs(fail(underWay)[0], 10_000, at(4))).toBeUndefined();
    expect(remainingMs(undefined, 10_000, at(4))).toBeUndefined();
  });
});

test("settings are what the pods are created from, and nothing of route or scale", () => {
  const spec = {
    type: "http",
    name: "project",
    plan: "basic",
    paymentMode: "hourly",
    exposure: "public",
    image: { url: "registry.example/app:1", isPublic: true },
    port: 80,
    instances: 3,
    envsFrom: [{ name: "p1-env-0123456789ab" }],
    healthcheck: { enabled: true, path: "/up" },
    terminationGracePeriodSeconds: 60,
  } as const;
  const { image, port, envsFrom, healthcheck, terminationGracePeriodSeconds, plan, paymentMode } = spec;
  const settings = settingsOf({
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: "p1" },
    spec: { ...spec, envsFrom: [...envsFrom] },
  });
  expect(settings).toEqual({
    image,
    port,
    envsFrom,
    healthcheck,
    terminationGracePeriodSeconds,
    plan,
    paymentMode,
  });
  const {
    port: _port,
    healthcheck: _check,
    terminationGracePeriodSeconds: _grace,
    exposure: _exposure,
    ...rest
  } = spec;
  const readiness = { command: ["cat", "/tmp/ready"] };
  const command = ["node", "worker.js"];
  const ofWorker = settingsOf({
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: "p1" },
    spec: { ...rest, type: "worker", command, readiness, envsFrom: [...envsFrom] },
  });
  expect(ofWorker).toEqual({ image, command, envsFrom, readiness, plan, paymentMode });
});
