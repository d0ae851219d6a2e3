import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BuildHarness, CANARY } from "../../../test/kit/builder/build-harness.ts";
import { Redactor } from "../log/redact.ts";
import { OutputLines } from "../log/writer.ts";
import { Buildah } from "./buildah.ts";
import { probeBackend } from "./probe.ts";

/** Plans are built with a real buildah, and pushed to a real registry. */

let harness: BuildHarness;
beforeAll(async () => {
  harness = await BuildHarness.start("buildah");
});
afterAll(() => harness?.stop());

const script = (buildCommand: string) => ({
  files: { "server.js": "1" },
  settings: { runtime: "node", startCommand: "sh server.js", buildCommand },
});

describe("a planned build", () => {
  test("is made, pushed by digest, and holds nothing of the project's variables", async () => {
    const length = `\${#TOKEN} -eq ${CANARY.length}`;
    const options = script(`[ ${length} ] && echo "print $TOKEN" && echo made > made`);
    const { digest, exitCode, text, image, lines } = await harness.build(options);
    expect(text).toContain("print ***");
    expect(text).not.toContain("canary");
    expect(exitCode).toBe(0);
    expect(lines.find(({ step }) => step === "build")?.message).toBe("The image is made by buildah.");
    const manifest = await fetch(`http://${harness.host}/v2/shop/one/manifests/${digest}`, {
      headers: { accept: "application/vnd.oci.image.manifest.v1+json" },
    });
    expect(manifest.status).toBe(200);
    const blobs = join(image, "blobs/sha256");
    for (const name of await readdir(blobs)) {
      const bytes = await readFile(join(blobs, name));
      expect((bytes[0] === 0x1f ? gunzipSync(bytes) : bytes).includes("canary-3f9a")).toBe(false);
    }
    const again = await harness.build(options);
    expect(again.digest).toBe(digest);
    expect(again.text).toMatch(/made > made \(cached\)/);
  });

  test("that fails leaves no secret in its cache", async () => {
    await harness.build(script("echo begun; exit 3"));
    const found = spawnSync("grep", ["-rlF", "canary-3f9a", join(harness.folder, "cache/buildah")]);
    expect([found.status, found.stdout.toString()]).toEqual([1, ""]);
  });

  test("keeps what steps put into their cache mounts", async () => {
    const own = (mark: string) => ({
      Dockerfile: [
        `FROM ${harness.host}/base/shell:1`,
        `RUN --mount=type=cache,id=kept,target=/kept [ ! -e /kept/one ] || echo "found again"; echo ${mark} > /kept/one`,
        "",
      ].join("\n"),
    });
    expect((await harness.build({ files: own("first") })).text).not.toMatch(/^found again$/m);
    expect((await harness.build({ files: own("second") })).text).toMatch(/^found again$/m);
  });

  test.each([
    ["a command that fails", script("echo boom >&2; exit 3"), "BUILD_COMMAND_FAILED"],
    ["a command that is killed", script("kill -9 $$"), "BUILD_OUT_OF_MEMORY"],
    ["a command that never ends", { ...script("while :; do :; done"), timeoutSeconds: 3 }, "BUILD_TIMEOUT"],
    [
      "an image that is too large",
      { ...script("echo large"), maxImageBytes: 1_000 },
      "BUILD_IMAGE_TOO_LARGE",
    ],
    [
      "an own file that is missing",
      { files: { Dockerfile: "FROM scratch\nCOPY gone /\n" } },
      "BUILD_FAILED_UNCLASSIFIED",
    ],
    [
      "an own Dockerfile that is none",
      { files: { Dockerfile: "FROM scratch\nFROB\n" } },
      "DOCKERFILE_INVALID",
    ],
  ])("%s fails as it does with BuildKit", async (_, options, code) => {
    const result = await harness.build(options);
    expect(result).toMatchObject({ step: "build", code, exitCode: 1 });
    expect(result.lines.at(-1)).toMatchObject({ level: "error", message: result.message });
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: names a frontend of its own (`# syntax=`)
  test("of an own Dockerfile that names a frontend the frontend is not requested", async () => {
    let asked = 0;
    const server = createServer((_request, answer) => {
      asked += 1;
      answer.writeHead(500).end();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const frontend = `127.0.0.1:${(server.address() as AddressInfo).port}/evil/frontend:1`;
    const Dockerfile = `# syntax=${frontend}\nFROM ${harness.host}/base/shell:1\nRUN echo built\n`;
    const { exitCode } = await harness.build({ files: { Dockerfile } });
    server.close();
    expect([exitCode, asked]).toEqual([0, 0]);
  });

  test("an own Dockerfile begins with an image that is not there", async () => {
    const result = await harness.build({
      files: { Dockerfile: `FROM ${harness.host}/base/gone:1\nRUN id\n` },
    });
    expect(result).toMatchObject({ code: "BASE_IMAGE_UNAVAILABLE", exitCode: 1 });
  });

  test("an own Dockerfile has the shell that it names", async () => {
    const Dockerfile = `FROM ${harness.host}/base/shell:1\nSHELL ["/bin/sh", "-ec"]\nRUN false; echo reached\n`;
    expect(await harness.build({ files: { Dockerfile } })).toMatchObject({ code: "BUILD_COMMAND_FAILED" });
  });

  test("a .containerignore leaves nothing out, as with BuildKit", async () => {
    const { exitCode } = await harness.build({
      files: { Dockerfile: "FROM scratch\nCOPY kept /\n", ".containerignore": "kept\n", kept: "1" },
    });
    expect(exitCode).toBe(0);
  });
});

describe("the backend itself", () => {
  const open = (name: string, cacheBytes: number) =>
    Buildah.start({
      root: join(harness.folder, name, "cache"),
      scratch: join(harness.folder, name, "scratch"),
      cacheBytes,
      registries: {},
    });

  test("passes the probe, which leaves no working container", async () => {
    const backend = await open("probe", 1e9);
    expect(await probeBackend(backend, join(harness.folder, "probe/files"))).toBeUndefined();
    await backend.close();
    expect(existsSync(join(harness.folder, "probe/cache"))).toBe(true);
  });

  test("empties its cache when that is larger than it may be", async () => {
    const backend = await open("bound", 1);
    await backend.close();
    expect(existsSync(join(harness.folder, "bound/cache"))).toBe(false);
  });

  test("stops a build when its signal aborts", async () => {
    const backend = await open("stop", 1e9);
    const folder = join(harness.folder, "stop/files");
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "Dockerfile"), "FROM scratch\nADD http://127.0.0.1:1/never /\n");
    const stop = new AbortController();
    stop.abort();
    const outcome = await backend.build(
      {
        context: folder,
        dockerfile: folder,
        secrets: {},
        args: {},
        commands: {},
        output: join(folder, "image"),
        timeoutMs: 60_000,
        signal: stop.signal,
      },
      { step: () => undefined, output: () => new OutputLines(new Redactor({}), () => undefined) },
    );
    await backend.close();
    expect(outcome.ok).toBe(false);
  });
});
