import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { spawnIdle } from "./idle.ts";

test("a command is nice beside its session, and its session beside others", async () => {
  const child = spawnIdle("sh", ["-c", "nice; cat /proc/self/autogroup"]);
  const [written] = await Promise.all([text(child.stdout), once(child, "close")]);
  const [nice, autogroup = ""] = written.split("\n");
  expect(nice).toBe("19");
  // Not every kernel has them.
  const has = await readFile("/proc/sys/kernel/sched_autogroup_enabled", "utf8").catch(() => "0");
  if (has.trim() === "1") {
    expect(autogroup).toMatch(/ nice 19$/);
  }
});
