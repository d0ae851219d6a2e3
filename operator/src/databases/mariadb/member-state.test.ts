import { describe, expect, test } from "vitest";
import { isServing, isSynced, parseMemberState } from "./member-state.ts";

const UUID = "71951be9-e5f5-11f1-ab66-3a367bef804d";
const waiting = (lines: string) => parseMemberState(`run=r1\nphase=waiting\n${lines}`);
const running = (change: Record<string, string> = {}) => {
  const reported = {
    wsrep_cluster_size: "3",
    wsrep_cluster_status: "Primary",
    wsrep_last_committed: "113",
    wsrep_local_state: "4",
    wsrep_local_state_uuid: UUID,
    wsrep_ready: "ON",
    event_scheduler: "ON",
    version: "11.8.6-MariaDB-0+deb13u1",
    ...change,
  };
  const lines = Object.entries(reported).map(([name, value]) => `${name}\t${value}`);
  return parseMemberState(["run=r1", "phase=joining", `data=none`, "uuid=", "seqno=-1", ...lines].join("\n"));
};

describe("a member that waits", () => {
  test("reports how far its data reach", () => {
    expect(waiting(`data=whole\nuuid=${UUID}\nseqno=9007199254740993\nsafe=1\n`)).toEqual({
      phase: "waiting",
      run: "r1",
      data: "whole",
      position: { uuid: UUID, seqno: 9_007_199_254_740_993n },
      safe: true,
    });
  });

  test.each([
    ["none", "data=none\nuuid=\nseqno=-1\nsafe=0", "none"],
    ["a copy that was interrupted", "data=incomplete\nuuid=\nseqno=-1\nsafe=0", "incomplete"],
    ["whole data that are nowhere", `data=whole\nuuid=${UUID}\nseqno=-1\nsafe=0`, "broken"],
    ["whole data of no history", "data=whole\nuuid=\nseqno=7\nsafe=0", "broken"],
  ])("with %s has no position", (_, lines, data) => {
    expect(waiting(lines)).toEqual({ phase: "waiting", run: "r1", data, position: undefined, safe: false });
  });

  test("counts as starting until its output is complete", () => {
    expect(waiting("")).toEqual({ phase: "starting" });
    expect(parseMemberState("run=r1\nphase=recovering\n")).toEqual({ phase: "starting" });
    expect(parseMemberState("run=\nphase=\n")).toBeUndefined();
    expect(parseMemberState("")).toBeUndefined();
  });
});

describe("a member that runs", () => {
  test("has what the server reports, not what it had before", () => {
    expect(running()).toEqual({
      phase: "running",
      run: "r1",
      primary: true,
      ready: true,
      state: 4,
      size: 3,
      position: { uuid: UUID, seqno: 113n },
      events: true,
      version: "11.8.6",
    });
  });

  test.each([
    ["synced", {}, true, true],
    ["a donor", { wsrep_local_state: "2" }, true, false],
    ["a joiner", { wsrep_local_state: "1" }, false, false],
    ["without a majority", { wsrep_cluster_status: "non-Primary", wsrep_local_state: "0" }, false, false],
    ["not ready", { wsrep_ready: "OFF" }, false, false],
  ])("%s", (_, change, serves, synced) => {
    expect([isServing(running(change)), isSynced(running(change))]).toEqual([serves, synced]);
  });
});
