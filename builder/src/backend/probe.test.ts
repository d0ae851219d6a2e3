import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { BuildOutcome, BuildRequest, Engine } from "./backend.ts";
import { emptyProgram, tryEngine } from "./probe.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-trial-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("the trial's program runs on this machine and ends with 0", async () => {
  const file = join(folder, "true");
  await writeFile(file, emptyProgram(process.arch), { mode: 0o755 });
  expect(execFileSync(file).toString()).toBe("");
});

test.each<[string, BuildOutcome, string | undefined]>([
  ["makes the image", { ok: true }, undefined],
  ["cannot", { ok: false, timedOut: false, text: " refused \n" }, "refused"],
  ["never ends", { ok: false, timedOut: true, text: "" }, "no image in time"],
])("an engine that %s; nothing is left of it", async (_, outcome, said) => {
  const requests: BuildRequest[] = [];
  const engine: Engine = {
    build: async (request) => {
      requests.push(request);
      expect(existsSync(join(request.context, "true"))).toBe(true);
      return outcome;
    },
    close: async () => undefined,
  };
  const own = join(folder, "trial");
  expect(await tryEngine(engine, own)).toBe(said);
  await tryEngine(engine, own);
  expect(existsSync(own)).toBe(false);
  // Otherwise the second one would be taken from the cache, and nothing would run.
  expect(requests[0]?.args).not.toEqual(requests[1]?.args);
});
