/**
 * `node test/upgrade/main.ts [--from DIR] [--to DIR] [--rounds 3] [--kills 2,8,20]`: installs the release of one bundle, then the other and
 * so on while users work, and prints what they saw. Without bundles it makes those of the last release and of HEAD. Kills are seconds
 * into each step after which it is killed with SIGKILL, and begun again. Leaves `.slipway/logs/upgrade/report.md` and `.json`; exits 1 when
 * anybody noticed.
 */
import { existsSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { run as execute } from "../../hack/lib/exec.ts";
import { root } from "../../hack/lib/paths.ts";
import { BUNDLE, parseManifest } from "../../hack/releases/bundle/manifest.ts";
import { recordedVersions, releasedCommit } from "../../hack/releases/recorded.ts";
import { writeReport } from "../../hack/testing/reports.ts";
import { testedCommit } from "../../hack/testing/summary.ts";
import { install } from "./releases.ts";
import { faults, markdown, type Results } from "./report.ts";
import type { Release } from "./run.ts";

const { values } = parseArgs({
  options: {
    from: { type: "string" },
    to: { type: "string" },
    rounds: { type: "string", default: "3" },
    kills: { type: "string", default: "" },
  },
});
const log = (line: string) => console.log(`upgrade: ${line}`);

async function releaseOf(folder: string): Promise<Release> {
  const bundle = resolve(folder);
  const { version } = parseManifest(await readFile(join(bundle, BUNDLE.manifest), "utf8"));
  return { version, bundle };
}

const bundles = join(root, ".slipway", "bundles");

/** The bundle of a commit, made where it is not there. */
async function bundleOf(version: string, revision: string): Promise<string> {
  const commit = (await execute("git", ["-C", root, "rev-parse", revision])).trim();
  const out = join(bundles, `${version}-${commit.slice(0, 8)}`);
  if (!existsSync(out)) {
    log(`making the bundle of ${version}, commit ${commit.slice(0, 8)}`);
    const options = ["--commit", commit, "--out", out, "--programs", "off"];
    await execute("hack/release.sh", [version, ...options], { cwd: root });
  }
  return out;
}

const last = recordedVersions().at(-1) ?? "";
const [major, minor] = last.split(".").map(Number);
const from = await releaseOf(values.from ?? (await bundleOf(last, releasedCommit(last) ?? "HEAD")));
const to = await releaseOf(values.to ?? (await bundleOf(`${major}.${Number(minor) + 1}.0`, "HEAD")));
// Those of commits before, each as large as these.
for (const name of await readdir(bundles).catch(() => [])) {
  if (![from.bundle, to.bundle].includes(join(bundles, name))) {
    await rm(join(bundles, name), { recursive: true });
  }
}
const releases = Array.from({ length: Number(values.rounds) + 1 }, (_, index) =>
  index % 2 === 0 ? from : to,
);
log(`installing ${from.version}`);
await install(from.bundle);
// It reads the stack's file, which there is only now.
const { run } = await import("./run.ts");
const kills = values.kills
  .split(",")
  .filter(Boolean)
  .map((seconds) => Number(seconds) * 1_000);
const results: Results = {
  commit: await testedCommit(),
  ...(await run({ releases, kills, log })),
};
await writeReport("upgrade", results, markdown(results));
process.exit(faults(results).length === 0 ? 0 : 1);
