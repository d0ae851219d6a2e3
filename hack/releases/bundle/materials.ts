/** What a release's processes are made of, as SPDX: https://spdx.github.io/spdx-spec/v2.3/. Pure. */
import { z } from "zod";
import type { DebianPackage } from "../../images/packages.ts";

const lockFile = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      resolved: z.string().optional(),
      integrity: z.string().optional(),
      license: z.string().optional(),
      dev: z.boolean().optional(),
      link: z.boolean().optional(),
    }),
  ),
});

interface SpdxPackage {
  SPDXID: string;
  name: string;
  versionInfo?: string;
  downloadLocation: string;
  licenseConcluded: string;
  licenseDeclared: string;
  copyrightText: string;
  filesAnalyzed: false;
  checksums?: { algorithm: "SHA512"; checksumValue: string }[];
  externalRefs?: { referenceCategory: "PACKAGE-MANAGER"; referenceType: "purl"; referenceLocator: string }[];
}

/** Software that a document names. */
export interface Material {
  name: string;
  /** Absent where it is not known. */
  version?: string;
  /** `pkg:npm/zod@4.0.0`: https://github.com/package-url/purl-spec */
  purl: string;
  license?: string;
  /** SHA-512 in hexadecimal. */
  sha512?: string;
}

/** Packages of the npm registry that a lock file installs without those for development, each once. */
export function npmMaterials(lock: string): Material[] {
  const { packages } = lockFile.parse(JSON.parse(lock));
  const found = new Map<string, Material>();
  for (const [path, { version, integrity, license, dev, link }] of Object.entries(packages)) {
    const name = path.split("node_modules/").at(-1) ?? "";
    if (!path.includes("node_modules/") || version === undefined || dev === true || link === true) {
      continue;
    }
    const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
    const sha512 = integrity?.startsWith("sha512-")
      ? Buffer.from(integrity.slice(7), "base64").toString("hex")
      : undefined;
    found.set(purl, { name, version, purl, ...(license && { license }), ...(sha512 && { sha512 }) });
  }
  return sortMaterials([...found.values()]);
}

/** A Debian package as a material. */
export function debianMaterial({ name, version, arch }: DebianPackage): Material {
  const [path, at] = [name, version ?? ""].map(encodeURIComponent);
  const purl = `pkg:deb/debian/${path}${at && `@${at}`}?arch=${arch}`;
  return { name, ...(version && { version }), purl };
}

/** Modules that Go programs were built from, and Go itself. @param listed by `go version -m`, of one program or a folder of them */
export function goMaterials(listed: string): Material[] {
  const found: Material[] = [];
  for (const line of listed.split("\n")) {
    const go = /^\S.*: go(\d\S*)$/.exec(line)?.[1];
    if (go !== undefined) {
      found.push({ name: "stdlib", version: go, purl: `pkg:golang/stdlib@${go}` });
    }
    const [, name, version] = /^\t(?:dep|mod|=>)\t(\S+)\t(\S+)/.exec(line) ?? [];
    if (name !== undefined && version !== undefined && version !== "(devel)") {
      const purl = `pkg:golang/${name}@${version}`;
      found.push({ name, version, purl });
    }
  }
  return sortMaterials(found);
}

/** Materials in the order of their package URLs, each once. */
export function sortMaterials(materials: readonly Material[]): Material[] {
  const byUrl = new Map(materials.map((one) => [one.purl, one]));
  return [...byUrl.values()].sort((a, b) => (a.purl < b.purl ? -1 : 1));
}

/** An SPDX document of something that contains these materials. @param created of the commit, as the same sources give the same document */
export function spdxDocument(
  subject: { name: string; version: string; commit: string; created: string; purl?: string },
  materials: readonly Material[],
): object {
  const { name, version, purl = "" } = subject;
  const root = spdxPackage({ name, version, purl }, "SPDXRef-Root");
  const packages = materials.map((one, index) => spdxPackage(one, `SPDXRef-Package-${index + 1}`));
  return {
    spdxVersion: "SPDX-2.3",
    dataLicense: "CC0-1.0",
    SPDXID: "SPDXRef-DOCUMENT",
    name: `${name}-${version}`,
    documentNamespace: `https://slipway.dev/spdx/${name}-${version}-${subject.commit}`,
    creationInfo: { created: subject.created, creators: ["Tool: slipway-release"] },
    packages: [root, ...packages],
    relationships: [
      relation("SPDXRef-DOCUMENT", "DESCRIBES", root.SPDXID),
      ...packages.map(({ SPDXID }) => relation(root.SPDXID, "CONTAINS", SPDXID)),
    ],
  };
}

const relation = (from: string, relationshipType: string, to: string) => ({
  spdxElementId: from,
  relationshipType,
  relatedSpdxElement: to,
});

function spdxPackage({ name, version, purl, license, sha512 }: Material, id: string): SpdxPackage {
  return {
    SPDXID: id,
    name,
    ...(version && { versionInfo: version }),
    downloadLocation: "NOASSERTION",
    licenseConcluded: "NOASSERTION",
    licenseDeclared: license ?? "NOASSERTION",
    copyrightText: "NOASSERTION",
    filesAnalyzed: false,
    ...(sha512 && { checksums: [{ algorithm: "SHA512" as const, checksumValue: sha512 }] }),
    ...(purl && {
      externalRefs: [
        {
          referenceCategory: "PACKAGE-MANAGER" as const,
          referenceType: "purl" as const,
          referenceLocator: purl,
        },
      ],
    }),
  };
}
