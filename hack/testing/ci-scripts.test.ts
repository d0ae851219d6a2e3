import { execFile } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { root } from "../lib/paths.ts";

/** The scripts of .ci in a repository whose own commands, and gh, only record how they were called. */
let repository: string;

async function program(path: string, lines: string): Promise<void> {
  await mkdir(join(repository, path, ".."), { recursive: true });
  await writeFile(join(repository, path), `#!/usr/bin/env bash\nset -euo pipefail\n${lines}\n`);
  await chmod(join(repository, path), 0o755);
}

beforeEach(async () => {
  repository = await mkdtemp(join(tmpdir(), "slipway-ci-"));
  await cp(join(root, ".ci"), join(repository, ".ci"), { recursive: true });
  const record = (name: string) => `echo "${name} $*" >>calls`;
  await program(
    "hack/release.sh",
    `${record("release")}
echo "key in environment: \${RELEASE_KEY:-none}" >>calls
mkdir -p "$5"; echo sums >"$5/SHA256SUMS"
if [ $# -gt 5 ]; then
  stat -c %a "$7" >>calls; cat "$7" >>calls; dirname "$7" >secrets; echo signature >"$5/SHA256SUMS.sig"
fi`,
  );
  await program("hack/up.sh", `${record("up")}\necho "$SLIPWAY_VALUES" >>calls\nls "\${!#}" >>calls`);
  await program("node_modules/.bin/vitest", record("vitest"));
  await program("bin/gh", record("gh"));
});
afterEach(() => rm(repository, { recursive: true }));

async function ci(script: string, args: string[], env: Record<string, string> = {}): Promise<string> {
  const PATH = `${join(repository, "bin")}:${process.env.PATH}`;
  await promisify(execFile)(join(repository, ".ci", script), args, {
    env: { ...process.env, PATH, RELEASE_KEY: "", ...env },
  });
  return (await readFile(join(repository, "calls"), "utf8")).replaceAll(repository, "");
}

test("a tag's bundle is signed with a key that only its owner reads, and that is removed", async () => {
  const calls = await ci("bundle.sh", ["v0.2.0"], { RELEASE_KEY: "-----BEGIN\nkey\n-----END" });
  expect(calls).toMatch(
    /^release 0\.2\.0 --commit HEAD --out dist\/slipway-0\.2\.0 --key \S+\/release\.key$/m,
  );
  expect(calls).toContain("key in environment: none\n600\n-----BEGIN\nkey\n-----END\n");
  const secrets = (await readFile(join(repository, "secrets"), "utf8")).trim();
  await expect(readdir(secrets)).rejects.toThrow("ENOENT");
  expect((await readdir(join(repository, "dist"))).toSorted()).toEqual([
    "SHA256SUMS",
    "SHA256SUMS.sig",
    "slipway-0.2.0",
    "slipway-0.2.0.tar.00",
  ]);
});

test("without a key there is no bundle of a release, only one for tests", async () => {
  await expect(ci("bundle.sh", ["v0.2.0"])).rejects.toThrow("RELEASE_KEY is empty, and a release is signed");
  expect(await ci("bundle.sh", ["0.0.0"])).toContain("--out dist/slipway-0.0.0\n");
});

test("the end-to-end tests on kind install the packed bundle", async () => {
  await ci("bundle.sh", ["0.0.0"]);
  const calls = await ci("kind.sh", ["1.33", "dist"]);
  expect(calls).toMatch(/^up --cluster kind --kubernetes 1\.33 --bundle \S+\/slipway-0\.0\.0$/m);
  expect(calls).toContain("/test/e2e/values.yaml\nSHA256SUMS\nvitest run --project e2e test/e2e/");
});

test("what is published are the bundle's parts, its checksums and their signature", async () => {
  await ci("bundle.sh", ["v0.2.0"], { RELEASE_KEY: "key" });
  const calls = await ci("publish.sh", ["v0.2.0", "dist"]);
  expect(calls).toMatch(/^gh release create v0\.2\.0 --verify-tag --title Slipway 0\.2\.0 /m);
  expect(calls).toMatch(/ dist\/SHA256SUMS dist\/SHA256SUMS\.sig dist\/slipway-0\.2\.0\.tar\.00$/m);
});

test("nothing without a signature is published", async () => {
  await ci("bundle.sh", ["0.0.0"]);
  await expect(ci("publish.sh", ["v0.2.0", "dist"])).rejects.toThrow("dist has no SHA256SUMS.sig");
});
