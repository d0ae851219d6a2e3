import { expect, test } from "vitest";
import { databaseOf, exampleDatabase, podOf } from "../../../../test/kit/databases/examples.ts";
import { priorityCommand } from "./commands.ts";
import { nodeAddress } from "./names.ts";
import { type MemberState, parseMemberState } from "./topology.ts";

const three = databaseOf({
  project: exampleDatabase({
    type: "valkey",
    profile: "key_value",
    plan: "db-premium_plus",
    version: "9.1.1",
    instances: undefined,
  }),
});
const fewer = { ...three, instances: 1 };
const pods = [0, 1, 2].map((ordinal) => podOf(ordinal));

function reported(...lines: string[]): MemberState {
  const state = parseMemberState(["valkey_version:9.1.2", ...lines].join("\r\n"));
  if (state === undefined) {
    throw new Error("no state");
  }
  return state;
}
/** @param of ordinal of the primary that it follows */
const replica = (priority: number, link: "up" | "down", of = 0) =>
  reported(
    "role:slave",
    `master_host:${nodeAddress(three, of)}`,
    `master_link_status:${link}`,
    `slave_priority:${priority}`,
  );
const primary = reported("role:master", "slave0:ip=x,state=online");

/** For the instance of an ordinal, where each has reported a state or nothing. */
function command(ordinal: number, states: readonly (MemberState | undefined)[], database = three) {
  const memberStates = new Map(
    pods.flatMap((pod, index) => (states[index] ? [[pod, states[index]] as const] : [])),
  );
  return priorityCommand(database, pods[ordinal] ?? podOf(ordinal), memberStates);
}

test("a replica that has synchronized may be promoted, and one that has not may not", () => {
  expect(command(1, [primary, replica(0, "up")])).toBe("CONFIG SET replica-priority 100");
  expect(command(1, [primary, replica(0, "down")])).toBeUndefined();
});

test("a replica stays promotable when its link breaks", () => {
  expect(command(1, [undefined, replica(100, "down")])).toBeUndefined();
  expect(command(1, [primary, replica(100, "up")])).toBeUndefined();
});

test("a surplus replica is not promoted while an instance that is kept has all data", () => {
  expect(command(2, [primary, undefined, replica(100, "up")], fewer)).toBe("CONFIG SET replica-priority 0");
  expect(command(2, [replica(100, "up", 1), primary, replica(100, "up", 1)], fewer)).toBe(
    "CONFIG SET replica-priority 0",
  );
  expect(command(2, [primary, undefined, replica(0, "up")], fewer)).toBeUndefined();
});

test.each([
  ["has no data", replica(100, "down", 1)],
  ["does not answer", undefined],
  ["is a primary that others have left", primary],
  ["follows such a one", replica(100, "up", 2)],
])("a surplus replica may be promoted while the instance that is kept %s", (_, kept) => {
  expect(command(2, [kept, primary, replica(100, "up", 1)], fewer)).toBeUndefined();
  expect(command(2, [kept, primary, replica(0, "up", 1)], fewer)).toBe("CONFIG SET replica-priority 100");
});

test("a surplus replica stays promotable when the primary is lost", () => {
  expect(command(2, [replica(100, "down"), undefined, replica(100, "down")], fewer)).toBeUndefined();
});

test("a primary gets no priority, nor one that has not answered", () => {
  expect(command(0, [primary])).toBeUndefined();
  expect(command(1, [primary])).toBeUndefined();
});
