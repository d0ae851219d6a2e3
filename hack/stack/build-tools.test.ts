import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildAuthorities, toolVariables } from "./build-tools.ts";

const none = { env: {}, npmRegistry: "", pipIndex: "" };
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "authorities-"));
});
afterAll(() => rm(folder, { recursive: true }));

test("builds get mirrors alone: defaults are left out", () => {
  expect(toolVariables({ ...none, npmRegistry: "https://registry.npmjs.org/" })).toEqual({});
  expect(toolVariables({ ...none, npmRegistry: "undefined" })).toEqual({});
  expect(
    toolVariables({
      env: { GOPROXY: "https://go.example", PATH: "/bin", PIP_FIND_LINKS: "/a/folder", PIP_INDEX_URL: "" },
      npmRegistry: "https://npm.example/",
      pipIndex: "https://pypi.example/simple",
    }),
  ).toEqual({
    NPM_CONFIG_REGISTRY: "https://npm.example/",
    PIP_INDEX_URL: "https://pypi.example/simple",
    UV_DEFAULT_INDEX: "https://pypi.example/simple",
    GOPROXY: "https://go.example",
  });
});

test("authorities are those that the machine's clients are configured with, without the text between them", async () => {
  const file = join(folder, "bundle.crt");
  const pem = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----`;
  await writeFile(file, `# somebody's\n${pem("QUE=")}\n\n${pem("QkI=")}\n`);
  expect(await buildAuthorities({ SSL_CERT_FILE: file })).toBe(`${pem("QUE=")}\n${pem("QkI=")}`);
  expect(await buildAuthorities({ NODE_EXTRA_CA_CERTS: file })).toContain("QkI=");
  expect(await buildAuthorities({})).toBe("");
  expect(await buildAuthorities({ SSL_CERT_FILE: join(folder, "nothing") })).toBe("");
});
