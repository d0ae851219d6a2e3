import { Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import type { BillableChangeRow, NumberedChange } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { endGoneProjects, type LastSeen } from "./ended-projects.ts";

const clock = new FakeClock("2026-03-02T10:00:00Z");
const state = {
  plan: "basic",
  paymentMode: "hourly",
  renews: true,
  instances: 1,
  paused: false,
  billedGb: 0,
} as const;

const project = (name: string, uid: string, creationTimestamp = "2026-03-01T00:00:00Z"): Project => {
  const ref = { namespace: "slipway-org-alpha", name };
  const own = { ...ref, uid, resourceVersion: "1", creationTimestamp };
  return { ...exampleProject(ref), metadata: own } as Project;
};

/** Of the names in the ledger, those in the memory and those that the apiserver has. */
async function endsOf(
  watched: readonly Project[],
  live: readonly Project[],
  at: string,
  { seen = new Map(), wrong }: { seen?: LastSeen; wrong?: string } = {},
): Promise<unknown[]> {
  const store = new Store<Project>({ clock });
  store.replace(watched, "1");
  const recorded: BillableChangeRow[] = [];
  const open = ["kept", "behind", "gone", "again", "foreign"].map((name) => ({
    organizationId: name === "foreign" ? "beta" : "alpha",
    projectId: name,
    projectUid: `uid-${name}`,
    meteredUntil: new Date("2026-03-02T08:30:00Z"),
  }));
  const last: NumberedChange = { number: 4, at: new Date(at), state };
  await endGoneProjects(
    {
      ledger: {
        open: async () => open,
        last: async (uids) => new Map(uids.map((uid) => [uid, last])),
        record: async (rows) => {
          if (rows.some(({ projectUid }) => projectUid === wrong)) {
            throw Object.assign(new Error("is not in order"), { code: "23514" });
          }
          recorded.push(...rows);
          return rows.map(({ projectUid, number }) => ({ projectUid, number, outcome: "recorded" as const }));
        },
      },
      client: {
        getOrUndefined: async <T>(_: unknown, { name }: { name: string }) => {
          if (name === "behind" && live.length === 0) {
            throw new Error("unavailable");
          }
          return live.find(({ metadata }) => metadata.name === name) as T | undefined;
        },
      },
      projects: store,
      owns: (namespace) => namespace === "slipway-org-alpha",
      clock,
      log: silentLogger,
    },
    seen,
    new AbortController().signal,
  );
  return recorded.map(({ projectUid, number, at: end, state: has }) => [
    projectUid,
    number,
    end.toISOString(),
    has,
  ]);
}

// Shows: docs/adr/0032-recorded-changes.md#consequences: until the operator finds that it is gone
test("histories of projects that are gone end when they were last known to exist", async () => {
  const again = project("again", "uid-other", "2026-03-02T09:00:00Z");
  const live = [project("kept", "uid-kept"), project("behind", "uid-behind"), again];
  const seen: LastSeen = new Map([["uid-gone", new Date("2026-03-02T09:50:00Z")]]);
  const ends = await endsOf([project("kept", "uid-kept"), again], live, "2026-03-02T08:00:00Z", { seen });
  expect(ends).toEqual([
    ["uid-gone", 5, "2026-03-02T09:50:00.000Z", undefined],
    ["uid-again", 5, "2026-03-02T08:30:00.000Z", undefined],
  ]);
  expect([...seen.keys()].sort()).toEqual(["uid-behind", "uid-gone", "uid-kept"]);
});

test("an end that the ledger refuses, or a project that cannot be read, keeps back no other end", async () => {
  const ends = await endsOf([], [], "2026-03-02T08:00:00Z", { wrong: "uid-kept" });
  expect(ends.map((end) => (end as unknown[])[0])).toEqual(["uid-gone", "uid-again"]);
});

test("no end is earlier than the last change", async () => {
  const live = ["kept", "behind", "again"].map((name) => project(name, `uid-${name}`));
  expect(await endsOf(live, live, "2026-03-02T11:00:00Z")).toEqual([
    ["uid-gone", 5, "2026-03-02T11:00:00.000Z", undefined],
  ]);
});
