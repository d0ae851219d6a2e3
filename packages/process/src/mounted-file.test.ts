import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { MountedFile, registerFiles } from "./mounted-file.ts";

let folder: string;
let path: string;
const log = { info: vi.fn(), error: vi.fn() };
const parse = (text: string): { n: number } => JSON.parse(text) as { n: number };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-file-"));
  path = join(folder, "numbers.json");
  await writeFile(path, '{"n":1}');
  vi.clearAllMocks();
});
afterEach(() => rm(folder, { recursive: true }));

test("a changed file is read and reported, an unchanged one is not", async () => {
  const file = await MountedFile.open(path, parse, log);
  const changed = vi.fn();
  const stop = file.onChange(changed);
  await file.reload();
  expect(changed).not.toHaveBeenCalled();
  await writeFile(path, '{"n":2}');
  await file.reload();
  expect(file.current.n).toBe(2);
  expect(changed).toHaveBeenCalledTimes(1);
  stop();
  await writeFile(path, '{"n":3}');
  await file.reload();
  expect(changed).toHaveBeenCalledTimes(1);
});

// Shows: docs/applications.md#catalogs: the catalog file is reloaded; a wrong one changes nothing
test("a file that becomes invalid or is deleted changes nothing; an invalid one is logged once", async () => {
  const file = await MountedFile.open(path, parse, log);
  const before = file.current;
  await writeFile(path, "{broken");
  await file.reload();
  await file.reload();
  expect(file.current).toBe(before);
  expect(file.isCurrent).toBe(false);
  expect(log.error).toHaveBeenCalledTimes(1);
  await rm(path);
  await file.reload();
  expect(file.current).toBe(before);
  await writeFile(path, '{"n":4}');
  await file.reload();
  expect(file.current.n).toBe(4);
  expect(file.isCurrent).toBe(true);
  await rm(path);
  await file.reload();
  expect(file.isCurrent).toBe(false);
  await writeFile(path, '{"n":4}');
  await file.reload();
  expect(file.isCurrent).toBe(true);
});

test("a listener that fails keeps no other from the change, and is not reported as a wrong file", async () => {
  const file = await MountedFile.open(path, parse, log);
  const changed = vi.fn();
  file.onChange(() => {
    throw new Error("the listener's own fault");
  });
  file.onChange(changed);
  await writeFile(path, '{"n":2}');
  await file.reload();
  expect(changed).toHaveBeenCalledTimes(1);
  expect(log.error.mock.calls.map(([, message]) => message)).toEqual([
    "a listener failed after the file was reloaded",
  ]);
});

test("a file that is being written is used once it is whole", async () => {
  const lines = (text: string) => text.split("\n");
  const file = await MountedFile.open(path, lines, log);
  const before = file.current;
  await writeFile(path, "first");
  const reading = file.reload();
  await sleep(50);
  await writeFile(path, "first\nsecond");
  await reading;
  expect(file.current).toBe(before);
  await file.reload();
  expect(file.current).toEqual(["first", "second"]);
});

test("there is no start without a good version, and the error names the file", async () => {
  await writeFile(path, "{broken");
  await expect(MountedFile.open(path, parse, log, 0)).rejects.toThrow(/numbers\.json is wrong/);
  await rm(path);
  await expect(MountedFile.open(path, parse, log)).rejects.toThrow(/numbers\.json/);
});

test("it is followed until the signal aborts", async () => {
  const file = await MountedFile.open(path, parse, log);
  const stop = new AbortController();
  const reported = new Promise<void>((resolve) => file.onChange(resolve));
  const running = file.run(stop.signal, 5);
  await writeFile(path, '{"n":5}');
  // The poll's timer keeps no process alive, so this one does.
  const alive = setInterval(() => {}, 1_000);
  await reported;
  stop.abort();
  await running;
  clearInterval(alive);
  expect(file.current.n).toBe(5);
});

test("a file that is half written when a process starts is waited for, and one that stays wrong is named", async () => {
  await writeFile(path, '{"n":');
  const opening = MountedFile.open(path, parse, log);
  await sleep(300);
  await writeFile(path, '{"n":7}');
  expect((await opening).current.n).toBe(7);
  await writeFile(path, "{broken");
  await expect(MountedFile.open(path, parse, log, 300)).rejects.toThrow(`${path} is wrong`);
});

test("what a process reports of its files follows them", async () => {
  const file = await MountedFile.open(path, parse, log);
  const registry = new Registry();
  registerFiles(registry, [file, undefined]);
  const metric = () => registry.getSingleMetricAsString("slipway_config_last_reload_successful");
  expect(await metric()).toContain('{file="numbers.json"} 1');
  await writeFile(path, "{broken");
  await file.reload();
  expect(await metric()).toContain('{file="numbers.json"} 0');
});

test("a good file is reported as current while it is read again", async () => {
  const file = await MountedFile.open(path, parse, log);
  const reloading = file.reload();
  expect(file.isCurrent).toBe(true);
  await reloading;
  expect(file.isCurrent).toBe(true);
});
