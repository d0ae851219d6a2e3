import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { getPriority } from "node:os";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { mayMakeControlGroup } from "../../test/kit/control-groups.ts";
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

test("an idle command is in a control group that is idle, and so is what it starts in another session", async () => {
  // What it is in is removed when it ends.
  const commands =
    "setsid --wait cat /proc/self/cgroup; cat /sys/fs/cgroup/cpu/slipway-idle/cpu.idle || cat /sys/fs/cgroup/slipway-idle/cpu.idle";
  const child = spawnNice("sh", ["-c", commands], { niceness: "idle" });
  const [written] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (!/^\d+:[\w,]*:.*\/slipway-idle$/m.test(written)) {
    // Not everybody may make one.
    expect(await mayMakeControlGroup("cpu.idle")).toBe(false);
    return;
  }
  expect(written).toMatch(/^1$/m);
});
