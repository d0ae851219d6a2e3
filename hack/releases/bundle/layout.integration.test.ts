import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startRegistry } from "../../../test/kit/servers/registry.ts";
import { ensureBinary } from "../../cluster/binaries.ts";
import { buildImage } from "../../images/index.ts";
import { sampleJob } from "../../images/samples.ts";
import { imageId } from "../../images/store.ts";
import { run } from "../../lib/exec.ts";
import { root } from "../../lib/paths.ts";
import { freePorts } from "../../lib/ports.ts";
import { packChart } from "./chart.ts";
import { addChart, addImage, configOf, digestOf, extract, loadImage } from "./layout.ts";
import { layoutName } from "./manifest.ts";

/** The layout of a bundle with one image and the chart, against a real registry and real clients. */

let folder: string;
let layout: string;
let host: string;
let registry: ChildProcess | undefined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-layout-"));
  layout = join(folder, "images");
  const [port = 0] = await freePorts(1);
  host = `127.0.0.1:${port}`;
  registry = await startRegistry(folder, host);
});

afterAll(async () => {
  if (registry?.exitCode === null) {
    registry.kill("SIGKILL");
    await once(registry, "exit");
  }
  await rm(folder, { recursive: true, force: true });
});

async function push(name: string): Promise<void> {
  const part = join(folder, name.replaceAll(/[/:]/g, "-"));
  await extract(layout, name, part);
  await run(await ensureBinary("crane"), ["push", "--insecure", part, `${host}/${name}`]);
}

test("an image keeps its digest in a registry, and comes back into the image cache as it was", async () => {
  const image = await buildImage(await sampleJob());
  const digest = await addImage(layout, image);
  expect(await digestOf(layout, layoutName(image))).toBe(digest);
  // Again, as a bundle has it whose commit is the same.
  expect(await addImage(layout, image)).toBe(digest);

  await push(layoutName(image));
  const crane = await ensureBinary("crane");
  expect((await run(crane, ["digest", "--insecure", `${host}/${layoutName(image)}`])).trim()).toBe(digest);

  await loadImage(layout, image);
  expect(await imageId(image.reference)).toBe(await configOf(layout, { digest }));
  const again = join(folder, "again");
  expect(await addImage(again, image)).toBe(digest);
});

test("the chart is the same bytes each time, and helm pulls it from a registry", async () => {
  const first = await packChart(root, "1.2.3", join(folder, "first"));
  const second = await packChart(root, "1.2.3", join(folder, "second"));
  expect(await readFile(second.archive)).toEqual(await readFile(first.archive));

  const name = "charts/slipway:1.2.3";
  await addChart(layout, { ...first, name });
  await push(name);
  const helm = await ensureBinary("helm");
  const address = `oci://${host}/charts/slipway`;
  const shown = await run(helm, ["show", "chart", address, "--version", "1.2.3", "--plain-http"]);
  expect(shown).toContain("version: 1.2.3");
  expect(shown).toContain("appVersion: 1.2.3");
});
