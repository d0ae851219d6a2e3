import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../../lib/paths.ts";
import { debianMaterial, goMaterials, npmMaterials, spdxDocument } from "./materials.ts";

const lock = JSON.stringify({
  packages: {
    "": { version: "1.0.0" },
    operator: { version: "0.0.0" },
    "node_modules/@slipway/operator": { resolved: "operator", link: true },
    "node_modules/@types/node": { version: "24.1.0", dev: true },
    "node_modules/zod": { version: "4.1.0", license: "MIT", integrity: "sha512-AQI=" },
    "operator/node_modules/@scope/name": { version: "2.0.0" },
    "node_modules/@scope/name": { version: "2.0.0" },
  },
});

test("packages that are installed in production are materials, each once", () => {
  expect(npmMaterials(lock)).toEqual([
    { name: "@scope/name", version: "2.0.0", purl: "pkg:npm/%40scope/name@2.0.0" },
    { name: "zod", version: "4.1.0", purl: "pkg:npm/zod@4.1.0", license: "MIT", sha512: "0102" },
  ]);
});

test("this repository's own lock file names what the processes load, and no tool", () => {
  const names = npmMaterials(readFileSync(join(root, "package-lock.json"), "utf8")).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["fastify", "zod", "pg"]));
  expect(names).not.toContain("vitest");
});

test("modules of a Go program are materials, replaced ones by their replacements, too", () => {
  const listed = [
    "/bin/crane: go1.24.1",
    "\tpath\tgithub.com/google/go-containerregistry/cmd/crane",
    "\tmod\tslipway.dev/crane\t(devel)\t",
    "\tdep\tgithub.com/spf13/cobra\tv1.9.1\th1:CXSaggrXdbHK9CF+8ywj8Amf7PBRmPCOJugH954Nnlo=",
    "\tdep\tgithub.com/old/one\tv1.0.0",
    "\t=>\tgithub.com/new/one\tv1.0.1\th1:x=",
    "\tbuild\t-compiler=gc",
  ].join("\n");
  expect(goMaterials(listed).map(({ purl }) => purl)).toEqual([
    "pkg:golang/github.com/new/one@v1.0.1",
    "pkg:golang/github.com/old/one@v1.0.0",
    "pkg:golang/github.com/spf13/cobra@v1.9.1",
    "pkg:golang/stdlib@1.24.1",
  ]);
});

test("a Debian package's name and version are escaped in its URL, and a version that is not known is left out", () => {
  const known = debianMaterial({ name: "libstdc++6", version: "1:14.2.0-19", arch: "amd64" });
  expect(known).toEqual({
    name: "libstdc++6",
    version: "1:14.2.0-19",
    purl: "pkg:deb/debian/libstdc%2B%2B6@1%3A14.2.0-19?arch=amd64",
  });
  const unknown = debianMaterial({ name: "tzdata", arch: "all" });
  expect(unknown).toEqual({ name: "tzdata", purl: "pkg:deb/debian/tzdata?arch=all" });
  const subject = { name: "slipway", version: "0.2.0", commit: "abc", created: "2026-01-02T03:04:05Z" };
  const { packages } = spdxDocument(subject, [unknown]) as { packages: object[] };
  expect(packages[1]).toMatchObject({ name: "tzdata" });
  expect(packages[1]).not.toHaveProperty("versionInfo");
});

test("the document has one package for each material, contained in what it describes", () => {
  const subject = { name: "slipway", version: "0.2.0", commit: "abc", created: "2026-01-02T03:04:05Z" };
  expect(spdxDocument(subject, npmMaterials(lock))).toMatchObject({
    spdxVersion: "SPDX-2.3",
    documentNamespace: "https://slipway.dev/spdx/slipway-0.2.0-abc",
    packages: [
      { SPDXID: "SPDXRef-Root", name: "slipway" },
      { SPDXID: "SPDXRef-Package-1", name: "@scope/name" },
      { SPDXID: "SPDXRef-Package-2", licenseDeclared: "MIT", checksums: [{ checksumValue: "0102" }] },
    ],
    relationships: [
      { relationshipType: "DESCRIBES", relatedSpdxElement: "SPDXRef-Root" },
      { spdxElementId: "SPDXRef-Root", relatedSpdxElement: "SPDXRef-Package-1" },
      { spdxElementId: "SPDXRef-Root", relatedSpdxElement: "SPDXRef-Package-2" },
    ],
  });
});
