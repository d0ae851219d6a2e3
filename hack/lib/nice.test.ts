import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { getPriority } from "node:os";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { spawnNice } from "./nice.ts";

test.each([
  [19, undefined],
  [10, 10],
])("a command is nice beside its session, and its session beside others: %i", async (wanted, niceness) => {
  const child = spawnNice("sh", ["-c", "nice; cat /proc/self/autogroup"], { niceness });
  const [written] = await Promise.all([text(child.stdout), once(child, "close")]);
  const [nice, autogroup = ""] = written.split("\n");
  expect(nice).toBe(String(Math.min(19, getPriority() + wanted)));
  // Not every kernel has them.
  const has = await readFile("/proc/sys/kernel/sched_autogroup_enabled", "utf8").catch(() => "0");
  if (has.trim() === "1") {
    expect(autogroup).toMatch(new RegExp(` nice ${wanted}$`));
  }
});
