import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { BuilderBackend, BuildOutcome, BuildRequest } from "./backend.ts";
import { emptyProgram, probeBackend } from "./probe.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-probe-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("the probe's program runs on this machine and exits with 0", async () => {
  const file = join(folder, "true");
  await writeFile(file, emptyProgram(process.arch), { mode: 0o755 });
  expect(execFileSync(file).toString()).toBe("");
});

test.each<[string, BuildOutcome, string | undefined]>([
  ["builds the image", { ok: true }, undefined],
  ["cannot", { ok: false, timedOut: false, text: " refused \n" }, "refused"],
  ["never ends", { ok: false, timedOut: true, text: "" }, "no image in time"],
])("a backend that %s; no files are left", async (_, outcome, said) => {
  const requests: BuildRequest[] = [];
  const backend: BuilderBackend = {
    build: async (request) => {
      requests.push(request);
      expect(existsSync(join(request.context, "true"))).toBe(true);
      return outcome;
    },
    close: async () => undefined,
  };
  const own = join(folder, "trial");
  expect(await probeBackend(backend, own)).toBe(said);
  await probeBackend(backend, own);
  expect(existsSync(own)).toBe(false);
  // Otherwise the second build would come from the cache, and nothing would run.
  expect(requests[0]?.args).not.toEqual(requests[1]?.args);
});
