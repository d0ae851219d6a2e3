import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ReloadedFile } from "./file.ts";

let directory: string;
let file: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "slipway-file-"));
  file = join(directory, "numbers.json");
});
afterEach(() => rm(directory, { recursive: true }));

const silent = pino({ level: "silent" });
const parse = (text: string) => JSON.parse(text) as { n: number };

it("takes over a new version, and keeps the last good one past a bad one", async () => {
  await writeFile(file, '{"n":1}');
  const reloaded = await ReloadedFile.open(file, parse, silent);
  await writeFile(file, '{"n":2}');
  await reloaded.reload();
  expect(reloaded.current.n).toBe(2);
  await writeFile(file, "{broken");
  await reloaded.reload();
  expect(reloaded.current.n).toBe(2);
  await rm(file);
  await reloaded.reload();
  expect(reloaded.current.n).toBe(2);
  await writeFile(file, '{"n":3}');
  await reloaded.reload();
  expect(reloaded.current.n).toBe(3);
  reloaded.close();
});

it("does not start without a good version", async () => {
  await expect(ReloadedFile.open(file, parse, silent)).rejects.toThrow();
  await writeFile(file, "{broken");
  await expect(ReloadedFile.open(file, parse, silent)).rejects.toThrow();
});
