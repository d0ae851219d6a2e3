import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { mayMakeControlGroup } from "../../test/kit/control-groups.ts";
import {
  controlGroupFolders,
  joinControlGroup,
  limitProcessors,
  removeControlGroup,
} from "./control-group.ts";

test("a process in a control group shares the processors with what it starts, also in another session", async () => {
  const name = `slipway-test-${process.pid}`;
  const read = (file: string) =>
    Promise.any(controlGroupFolders(name).map((folder) => readFile(join(folder, file), "utf8")));
  // It goes on once it has been moved.
  const child = spawn("sh", ["-c", "read moved; setsid --wait cat /proc/self/cgroup"]);
  await joinControlGroup(name, 4_096, child.pid ?? 0);
  const written = Promise.all([text(child.stdout), once(child, "close")]);
  const weight = await Promise.any([read("cpu.shares"), read("cpu.weight")]).catch(() => undefined);
  const limited = await limitProcessors(name, 0.25).then(
    () => Promise.any([read("cpu.cfs_quota_us"), read("cpu.max")]),
    (error: Error) => error.message,
  );
  child.stdin.end("\n");
  const [groups] = await written;
  await removeControlGroup(name);
  if (!groups.includes(`/${name}\n`)) {
    // Not everybody may make one.
    expect(await mayMakeControlGroup("cpu.shares", "cpu.weight")).toBe(false);
    expect(limited).toMatch(/^cannot limit the processors/);
    return;
  }
  expect(["4096\n", "157\n"]).toContain(weight);
  expect(["25000\n", "25000 100000\n"]).toContain(limited);
  await expect(read("cgroup.procs")).rejects.toThrow();
});
