import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitFor } from "../lib/wait.ts";
import { type Daemon, type DaemonDirs, ensureDaemon, isRunning, stopDaemon } from "./processes.ts";

let dirs: DaemonDirs;
let config: string;

beforeEach(() => {
  const dir = mkdtempSync(join(tmpdir(), "slipway-daemons-"));
  dirs = { run: dir, logs: dir };
  config = join(dir, "config");
  writeFileSync(config, "one");
});
afterEach(async () => {
  await stopDaemon("sleeper", 100, dirs);
  rmSync(dirs.run, { recursive: true });
});

const sleeper = (seconds: number): Daemon => ({
  name: "sleeper",
  argv: ["/bin/sleep", String(seconds)],
  reads: [config],
  healthy: async () => true,
});

const pid = () => (JSON.parse(readFileSync(join(dirs.run, "sleeper.pid"), "utf8")) as { pid: number }).pid;

test("is started once and then left alone", async () => {
  expect(await ensureDaemon(sleeper(60), dirs)).toBe("started");
  const first = pid();
  expect(await ensureDaemon(sleeper(60), dirs)).toBe("kept");
  expect(pid()).toBe(first);
});

test("is started again after it was killed", async () => {
  await ensureDaemon(sleeper(60), dirs);
  process.kill(pid(), "SIGKILL");
  await waitFor("its end", 2_000, async () => !isRunning("sleeper", dirs), 10);
  expect(await ensureDaemon(sleeper(60), dirs)).toBe("started");
});

test("is restarted when its command line or a file that it reads changed", async () => {
  await ensureDaemon(sleeper(60), dirs);
  expect(await ensureDaemon(sleeper(61), dirs)).toBe("restarted");
  writeFileSync(config, "two");
  expect(await ensureDaemon(sleeper(61), dirs)).toBe("restarted");
  expect(await ensureDaemon(sleeper(61), dirs)).toBe("kept");
});

test("another process that got its pid is neither taken for it nor stopped", async () => {
  const file = { pid: process.pid, startTime: "1", hash: "0" };
  writeFileSync(join(dirs.run, "sleeper.pid"), JSON.stringify(file));
  expect(isRunning("sleeper", dirs)).toBe(false);
  expect(await stopDaemon("sleeper", 100, dirs)).toBe(false);
});

test("one that ignores SIGTERM is killed; stopping twice is nothing", async () => {
  const stubborn = {
    ...sleeper(0),
    argv: ["/bin/sh", "-c", "trap '' TERM; while :; do /bin/sleep 0.1; done"],
  };
  await ensureDaemon(stubborn, dirs);
  expect(await stopDaemon("sleeper", 100, dirs)).toBe(true);
  expect(isRunning("sleeper", dirs)).toBe(false);
  expect(await stopDaemon("sleeper", 100, dirs)).toBe(false);
});

test("one that ends before it is healthy is reported with its log", async () => {
  const broken = { ...sleeper(0), argv: ["/bin/sh", "-c", "sleep 0.1; exit 1"], healthy: async () => false };
  const failing = ensureDaemon(broken, dirs);
  await expect(failing).rejects.toMatchObject({
    message: expect.stringContaining("it ended"),
    log: join(dirs.logs, "sleeper.log"),
  });
});

test("a command that does not exist fails immediately", async () => {
  await expect(ensureDaemon({ ...sleeper(0), argv: ["/nonexistent"] }, dirs)).rejects.toThrow(/ENOENT/);
});
