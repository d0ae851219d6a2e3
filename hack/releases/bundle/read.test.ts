import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { exampleRelease } from "../../../test/kit/releases/example-release.ts";
import { writeChecksums } from "./checksums.ts";
import { imagesOf, parseManifest } from "./manifest.ts";
import { openBundle } from "./open.ts";
import { provenanceOf } from "./provenance.ts";
import { valuesOf } from "./push.ts";
import { signChecksums } from "./signature.ts";

let keys: { own: string; public: string };

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "keys-"));
  keys = { own: join(folder, "release.key"), public: join(folder, "release.pub") };
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  await writeFile(keys.own, privateKey.export({ type: "pkcs8", format: "pem" }));
  await writeFile(keys.public, publicKey.export({ type: "spki", format: "pem" }));
});

async function bundle(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "bundle-"));
  await writeFile(join(folder, "release.json"), JSON.stringify(exampleRelease));
  await writeChecksums(folder);
  await signChecksums(folder, keys.own);
  return folder;
}

test("a bundle is opened as it was made, with its chart and what its databases are", async () => {
  const folder = await bundle();
  const { chart, images, release } = await openBundle(folder, keys.public);
  expect(release).toEqual(exampleRelease);
  expect(chart).toBe(join(folder, "chart/slipway-0.2.0.tgz"));
  expect(images.stack.map(({ name, deliver }) => `${name} ${deliver}`)).toContain("sampleJob push");
  expect(images.databases.map(({ engine, version }) => `${engine}:${version}`)).toEqual([
    "valkey:9.1.1",
    "postgresql:17",
  ]);
  expect(await images.builder.reference()).toBe("slipway.local/slipway/builder:1");
});

test("a changed manifest is refused, with its old checksum and with a new one", async () => {
  const folder = await bundle();
  await writeFile(join(folder, "release.json"), JSON.stringify({ ...exampleRelease, version: "0.3.0" }));
  await expect(openBundle(folder, keys.public)).rejects.toThrow("release.json is not what it was");
  await expect(openBundle(folder, undefined)).rejects.toThrow("release.json is not what it was");
  await writeChecksums(folder);
  await expect(openBundle(folder, keys.public)).rejects.toThrow("SHA256SUMS.sig is not of the key");
});

test("no bundle at all is named", async () => {
  await expect(openBundle("/nowhere", undefined)).rejects.toThrow("there is no bundle at /nowhere");
});

test("a manifest that is not of this format names what is wrong", () => {
  const wrong = { ...exampleRelease, builder: { ...exampleRelease.builder, digest: "latest" } };
  expect(() => parseManifest(JSON.stringify(wrong))).toThrow("release.json: builder.digest");
});

test("images are listed once, in order", () => {
  const references = imagesOf(exampleRelease).map(({ reference }) => reference);
  expect(references).toEqual([...new Set(references)].sort());
  expect(references).toContain("slipway.local/base/node:24-abc");
});

test("the chart's values name what was pushed by digest, and no runtime without its images", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  expect(valuesOf(exampleRelease, "registry.example/slipway")).toMatchObject({
    images: { operator: `registry.example/slipway/slipway/operator@${digest}` },
    databases: { images: { postgresql: { "17": { uid: 999 } } } },
    builds: { baseImages: { node: { "24": `registry.example/slipway/base/node@${digest}` } } },
  });
  // Go's programs run in an image that this release does not have.
  expect((valuesOf(exampleRelease, "r").builds as { baseImages: object }).baseImages).not.toHaveProperty(
    "go",
  );
});

test("the provenance names every file but the images' blobs, and every image", () => {
  const files = new Map([
    ["chart/slipway-0.2.0.tgz", "c".repeat(64)],
    ["images/blobs/sha256/x", "d".repeat(64)],
  ]);
  const { subject } = provenanceOf(exampleRelease, files) as { subject: { name: string }[] };
  const names = subject.map(({ name }) => name);
  expect(names).toContain("chart/slipway-0.2.0.tgz");
  expect(names).toContain("slipway/operator");
  expect(names).not.toContain("images/blobs/sha256/x");
});
