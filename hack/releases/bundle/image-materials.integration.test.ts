import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { ensureBinary } from "../../cluster/binaries.ts";
import { writeFiles } from "../../images/files.ts";
import { type BuiltImage, buildImage, images, type StackImage } from "../../images/index.ts";
import { inside } from "../../images/inside.ts";
import { sampleJob } from "../../images/samples.ts";
import { imageMaterials, readMaterials } from "./image-materials.ts";

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) {
    await rm(folder, { recursive: true });
  }
});

async function temporary(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "slipway-image-"));
  folders.push(folder);
  return folder;
}

test("an image's packages of npm and Python and modules of Go are its materials", async () => {
  const root = await temporary();
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

const builtNamed = async (name: StackImage["name"]): Promise<BuiltImage> => {
  const image = images.find((one) => one.name === name);
  if (image === undefined) {
    throw new Error(`no image ${name}`);
  }
  return image.build();
};

test("the platform's own image has what its processes load and what Node needs, and no tool of development", async () => {
  const names = (await imageMaterials(await builtNamed("apiServer"))).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["ca-certificates", "fastify", "libc6", "libstdc++6", "zod"]));
  expect(names).not.toContain("vitest");
  expect(names).not.toContain("debconf");
}, 600_000);

test("the ledger's image has Debian's PostgreSQL and its libraries in the versions of its programs, and no record of them inside", async () => {
  const image = await builtNamed("ledger");
  const listed = new Map((await imageMaterials(image)).map(({ name, purl }) => [name, purl]));
  // A layer that was built before the cache had records has no version of what the mirror has another one of.
  expect(listed.get("libc6")).toMatch(/^pkg:deb\/debian\/libc6(@2\.\d+-\S+)?\?arch=\w+$/);
  expect(listed.get("tzdata")).toMatch(/^pkg:deb\/debian\/tzdata(@20\d\d\S+)?\?arch=all$/);
  const { root, run, close } = await inside(image);
  try {
    const asked = run(["/usr/lib/postgresql/15/bin/postgres", "--version"], { uid: 999 });
    expect(await asked.exited, asked.output()).toBe(0);
    // As in "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)".
    const version = /\(Debian (\S+)\)/.exec(asked.output())?.[1] ?? "none";
    const [name, listedVersion = version] = decodeURIComponent(
      listed.get("postgresql-15")?.split("?")[0] ?? "",
    ).split("@");
    expect([name, listedVersion]).toEqual(["pkg:deb/debian/postgresql-15", version]);
    expect(existsSync(join(root, "var/lib/dpkg"))).toBe(false);
  } finally {
    await close();
  }
}, 600_000);

test("a layer has the same packages when it is built as when they are found in files without a record", async () => {
  const recipe = sampleJob();
  const [layer] = recipe.layers;
  const [built, empty] = [await temporary(), await temporary()];
  await layer?.write(join(built, "layer.tar"), built, "scratch");
  const packages = await layer?.packages?.(built);
  expect(packages).toEqual([
    { name: "busybox-static", version: expect.stringMatching(/^1:1\./), arch: expect.stringMatching(/./) },
  ]);
  expect(await layer?.packages?.(empty, join(built, "root"))).toEqual(packages);
  const image = await buildImage(recipe);
  expect(await image.packages?.()).toMatchObject([{ name: "busybox-static" }]);
}, 600_000);
