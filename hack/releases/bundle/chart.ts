/** The chart of a release, packed so that the same sources give the same bytes: `helm package` writes the time into it. */
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { run } from "../../lib/exec.ts";

/**
 * Packs the chart of a tree with the release's version.
 * @param out folder of the archive
 * @returns the archive's path and its Chart.yaml
 */
export async function packChart(
  tree: string,
  version: string,
  out: string,
): Promise<{ archive: string; metadata: Record<string, unknown> }> {
  const scratch = await mkdtemp(join(tmpdir(), "slipway-chart-"));
  try {
    const chart = join(scratch, "slipway");
    await cp(join(tree, "charts/slipway"), chart, {
      recursive: true,
      filter: (path) => !path.endsWith("/testdata"),
    });
    const text = (await readFile(join(chart, "Chart.yaml"), "utf8"))
      .replace(/^version: .*$/m, `version: ${version}`)
      .replace(/^appVersion: .*$/m, `appVersion: ${version}`);
    await writeFile(join(chart, "Chart.yaml"), text);
    await mkdir(out, { recursive: true });
    const archive = join(out, `slipway-${version}.tgz`);
    await packStable(scratch, ["slipway"], archive);
    return { archive, metadata: parse(text) as Record<string, unknown> };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/**
 * Packs paths as a compressed tar that depends on nothing but names, modes and contents.
 * @param prefix folder that they are in when they are unpacked; none without
 */
export async function packStable(
  parent: string,
  paths: readonly string[],
  archive: string,
  prefix = "",
): Promise<void> {
  // Targets of symbolic links stay as they are; those of hard links are members of the archive.
  const transform = prefix === "" ? [] : ["--transform", `s,^,${prefix}/,S`];
  const stable = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  const args = ["-C", parent, ...stable, "--mode=go=rX,u+rw,a-s", ...transform, "-cf", "-", ...paths];
  const script = 'set -o pipefail; archive=$1; shift; tar "$@" | gzip -6n > "$archive"';
  await run("bash", ["-c", script, "pack", archive, ...args]);
}
