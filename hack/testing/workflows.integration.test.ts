import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ensureBinary } from "../cluster/binaries.ts";
import { run } from "../lib/exec.ts";
import { root } from "../lib/paths.ts";

let actionlint: string;
let folder: string;
beforeAll(async () => {
  actionlint = await ensureBinary("actionlint");
  folder = await mkdtemp(join(tmpdir(), "slipway-workflows-"));
});
afterAll(() => rm(folder, { recursive: true }));

/** The findings of the linter that hack/verify.sh runs. */
async function findings(file: string, [from, to]: [string, string] = ["", ""]): Promise<string> {
  const text = await readFile(join(root, ".github/workflows", file), "utf8");
  expect(text).toContain(from);
  await mkdir(join(folder, ".github/workflows"), { recursive: true });
  const path = join(folder, ".github/workflows", file);
  await writeFile(path, text.replace(from, to));
  const script = '"$1" -no-color -oneline -pyflakes= "$2" || true';
  return run("sh", ["-c", script, "lint", actionlint, path], { cwd: folder });
}

test("it finds nothing in a workflow that is right", async () => {
  expect(await findings("ci.yml")).toBe("");
});

test.each<[string, string, string, string]>([
  ["a key that does not exist", "timeout-minutes:", "timeout-minute:", 'unexpected key "timeout-minute"'],
  ["a job that is not there", "needs: bundle", "needs: bundles", 'needs job "bundles" which does not exist'],
  ["a value of the matrix that it lacks", "matrix.kubernetes }}", "matrix.k8s }}", '"k8s" is not'],
  ["a permission that does not exist", "contents: read", "content: read", "content"],
  ["a runner that does not exist", "ubuntu-24.04", "ubuntu-24", 'label "ubuntu-24" is unknown'],
  [
    "an event that does not exist",
    "pull_request:",
    "pull_requests:",
    'unknown Webhook event "pull_requests"',
  ],
  ["an expression that is not one", "'pull_request' }}", "'pull_request }}", "expression"],
])("it finds %s", async (_, from, to, found) => {
  expect(await findings("ci.yml", [from, to])).toContain(found);
});
