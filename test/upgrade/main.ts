/**
 * `node test/upgrade/main.ts --from DIR --to DIR [--rounds 3] [--kills 2,8,20]`: installs the release of one bundle, then the other and
 * so on while users work, and prints what they saw. Kills are seconds into each step after which it is killed with SIGKILL, and begun
 * again. Leaves `.slipway/upgrade/report.md` and `.json`; exits 1 when anybody noticed.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { run as execute } from "../../hack/lib/exec.ts";
import { root } from "../../hack/lib/paths.ts";
import { BUNDLE, parseManifest } from "../../hack/releases/bundle/manifest.ts";
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

async function releaseOf(folder: string | undefined, flag: string): Promise<Release> {
  if (folder === undefined) {
    throw new Error(`${flag} names the folder of a bundle; hack/release.sh makes one`);
  }
  const bundle = resolve(folder);
  const { version } = parseManifest(await readFile(join(bundle, BUNDLE.manifest), "utf8"));
  return { version, bundle };
}

const [from, to] = [await releaseOf(values.from, "--from"), await releaseOf(values.to, "--to")];
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
  commit: (await execute("git", ["-C", root, "rev-parse", "--short", "HEAD"])).trim(),
  ...(await run({ releases, kills, log })),
};
const folder = join(root, ".slipway", "upgrade");
await mkdir(folder, { recursive: true });
await writeFile(join(folder, "report.md"), markdown(results));
await writeFile(join(folder, "report.json"), `${JSON.stringify(results, null, 2)}\n`);
console.log(markdown(results));
process.exit(faults(results).length === 0 ? 0 : 1);
