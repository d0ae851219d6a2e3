import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CatalogFile } from "./catalog.ts";
import { silentLogger } from "./runtime/index.ts";

let folder: string;
let path: string;
const original = await readFile(new URL("../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8");

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-catalog-"));
  path = join(folder, "catalog.yaml");
  await writeFile(path, original);
});
afterEach(() => rm(folder, { recursive: true }));

test("a changed file is taken in and told", async () => {
  const file = await CatalogFile.open(path, silentLogger);
  const changed = vi.fn();
  file.onChange(changed);
  await file.reload();
  expect(changed).not.toHaveBeenCalled();

  await writeFile(path, original.replace("jobsEnabled: true", "jobsEnabled: false"));
  await file.reload();
  expect(file.current.jobsEnabled).toBe(false);
  expect(changed).toHaveBeenCalledTimes(1);
});

test("a file that becomes wrong or goes away changes nothing, and is complained about once", async () => {
  const error = vi.fn();
  const file = await CatalogFile.open(path, { ...silentLogger, error });
  const before = file.current;
  await writeFile(path, "currency: gold");
  await file.reload();
  await file.reload();
  expect(file.current).toBe(before);
  expect(error).toHaveBeenCalledTimes(1);
  await writeFile(path, original.replace("jobsEnabled: true", "jobsEnabled: false"));
  await file.reload();
  expect(file.current.jobsEnabled).toBe(false);
});

test("a wrong file at start names itself and what is wrong", async () => {
  await writeFile(path, "currency: gold");
  await expect(CatalogFile.open(path, silentLogger)).rejects.toThrow(
    /catalog\.yaml is wrong:[\s\S]*httpPlans/,
  );
});
