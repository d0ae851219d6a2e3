import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openMountedBuildFiles } from "./mounted-files.ts";
import { parseBuildSettings } from "./settings.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "slipway-builds-"));
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(join(folder, "key.pem"), privateKey.export({ type: "pkcs8", format: "pem" }));
  writeFileSync(join(folder, "builds.yaml"), "image: builder:1\nregistry: { host: registry.example }\n");
  mkdirSync(join(folder, "tools"));
  writeFileSync(join(folder, "tools", "GOPROXY"), "https://mirror.example\n");
  writeFileSync(join(folder, "tools", "..data"), "");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = (more: object = {}) =>
  openMountedBuildFiles(
    {
      file: join(folder, "builds.yaml"),
      registryKeyFile: join(folder, "key.pem"),
      toolsDir: join(folder, "tools"),
      gitAllowedHosts: [],
      ...more,
    },
    silentLogger,
  );

test("files are read as they are mounted", async () => {
  const files = await open();
  expect(files.settings.current).toMatchObject({ namespace: "slipway-builds", concurrency: 2 });
  expect(files.tools()).toEqual({ GOPROXY: "https://mirror.example" });
  writeFileSync(join(folder, "tools", "GOPROXY"), "https://other.example");
  expect(files.tools()).toEqual({ GOPROXY: "https://other.example" });
});

test("a key that cannot sign tokens is rejected at startup", async () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-384" });
  writeFileSync(join(folder, "key.pem"), privateKey.export({ type: "pkcs8", format: "pem" }));
  await expect(open()).rejects.toThrow(/P-256/);
});

test("invalid settings are named", () => {
  const text = "image: builder:1\nregistry: { host: 'https://x' }\nlimits: { cpu: lots }\nconcurency: 3\n";
  const said = () => parseBuildSettings(text);
  for (const name of ["concurency", "registry.host", "limits.cpu"]) {
    expect(said).toThrow(name);
  }
});
