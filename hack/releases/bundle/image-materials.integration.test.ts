import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { ensureBinary } from "../../cluster/binaries.ts";
import { writeFiles } from "../../images/files.ts";
import { images } from "../../images/index.ts";
import { imageMaterials, readMaterials } from "./image-materials.ts";

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) {
    await rm(folder, { recursive: true });
  }
});

test("an image's packages of npm and Python and modules of Go are its materials", async () => {
  const root = await mkdtemp(join(tmpdir(), "slipway-image-"));
  folders.push(root);
  await writeFiles(root, {
    "app/node_modules/@scope/name/package.json": '{"name":"@scope/name","version":"2.0.0","license":"MIT"}',
    "app/node_modules/@scope/name/esm/package.json": '{"type":"module"}',
    "usr/lib/python3/dist-packages/ydiff-1.dist-info/METADATA": "Name: Y_Diff\nVersion: 1.3\n\nVersion: 9\n",
  });
  await mkdir(join(root, "usr/bin"), { recursive: true });
  await copyFile(await ensureBinary("crane"), join(root, "usr/bin/crane"));
  const urls = (await readMaterials(root)).map(({ purl }) => purl);
  const ofGo = urls.filter((url) => url.startsWith("pkg:golang/"));
  expect(urls.filter((url) => !ofGo.includes(url))).toEqual([
    "pkg:npm/%40scope/name@2.0.0",
    "pkg:pypi/y-diff@1.3",
  ]);
  expect(ofGo).toContainEqual(
    expect.stringMatching(/^pkg:golang\/github\.com\/google\/go-containerregistry@/),
  );
  expect(ofGo).toContainEqual(expect.stringMatching(/^pkg:golang\/stdlib@1\./));
});

test("the platform's own image has what its processes load, and no tool of development", async () => {
  const image = images.find(({ name }) => name === "apiServer");
  const built = await image?.build();
  const names = (await imageMaterials(built ?? { reference: "" })).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["fastify", "zod"]));
  expect(names).not.toContain("vitest");
}, 600_000);
