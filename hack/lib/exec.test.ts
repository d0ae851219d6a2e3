import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CommandError, run, succeeds } from "./exec.ts";

test("returns standard output and hands on input and environment", async () => {
  const out = await run("sh", ["-c", 'cat; printf %s "$EXTRA"'], { input: "in,", env: { EXTRA: "out" } });
  expect(out).toBe("in,out");
});

test("a failure has the code and the end of the command's output", async () => {
  const failing = run("sh", ["-c", "echo the reason >&2; exit 3"]);
  await expect(failing).rejects.toThrow(/ended with code 3: the reason/);
  await expect(failing).rejects.toBeInstanceOf(CommandError);
  expect(await succeeds("sh", ["-c", "exit 1"])).toBe(false);
  expect(await succeeds("true", [])).toBe(true);
});

test("a command that does not exist, or takes too long, did not finish", async () => {
  await expect(run("/nonexistent/command", [])).rejects.toThrow(/did not finish/);
  await expect(run("sleep", ["5"], { timeoutMs: 50 })).rejects.toThrow(/did not finish/);
});

test("the log has the command and both streams", async () => {
  const dir = mkdtempSync(join(tmpdir(), "exec-"));
  try {
    const log = join(dir, "log");
    await run("sh", ["-c", "echo one; echo two >&2"], { log });
    expect(readFileSync(log, "utf8")).toMatch(/\$ sh -c .*\none\ntwo\n|\$ sh -c .*\ntwo\none\n/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
