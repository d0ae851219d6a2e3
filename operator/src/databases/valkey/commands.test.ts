import { expect, test } from "vitest";
import { databaseOf, exampleDatabase, podOf } from "../../../../test/kit/databases/examples.ts";
import { priorityCommand } from "./commands.ts";
import { parseMemberState } from "./topology.ts";

const three = databaseOf({
  project: exampleDatabase({
    type: "valkey",
    profile: "key_value",
    plan: "db-premium_plus",
    version: "9.1.1",
    instances: undefined,
  }),
});
const replica = (priority: number, link: "up" | "down") => {
  const lines = [
    "valkey_version:9.1.2",
    "role:slave",
    `master_link_status:${link}`,
    `slave_priority:${priority}`,
  ];
  const facts = parseMemberState(lines.join("\r\n"));
  if (facts === undefined) {
    throw new Error("no facts");
  }
  return facts;
};
const command = (ordinal: number, priority: number, link: "up" | "down", database = three) =>
  priorityCommand(database, podOf(ordinal), replica(priority, link));

test("a replica that has synchronized may be promoted, and one that has not may not", () => {
  expect(command(1, 0, "up")).toBe("CONFIG SET replica-priority 100");
  expect(command(1, 0, "down")).toBeUndefined();
});

test("a replica stays promotable when its link breaks", () => {
  expect(command(1, 100, "down")).toBeUndefined();
  expect(command(1, 100, "up")).toBeUndefined();
});

test("a surplus replica is never promoted, linked or not", () => {
  const fewer = { ...three, instances: 1 };
  expect(command(2, 100, "up", fewer)).toBe("CONFIG SET replica-priority 0");
  expect(command(2, 100, "down", fewer)).toBe("CONFIG SET replica-priority 0");
  expect(command(2, 0, "up", fewer)).toBeUndefined();
});

test("a primary gets no priority", () => {
  const facts = parseMemberState("valkey_version:9.1.2\r\nrole:master");
  expect(facts && priorityCommand(three, podOf(0), facts)).toBeUndefined();
});
