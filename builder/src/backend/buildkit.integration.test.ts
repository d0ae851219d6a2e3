import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BuildHarness, CANARY, quiet } from "../../../test/kit/builder/build-harness.ts";
import type { StepError } from "../failures/codes.ts";
import { pushStep } from "../push/step.ts";

/** Plans are built with a real BuildKit, and pushed to a real registry. */

let harness: BuildHarness;
beforeAll(async () => {
  harness = await BuildHarness.start();
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
    const { digest, exitCode, text, image } = await harness.build(options);
    expect(text).toContain("print ***");
    expect(text).not.toContain("canary");
    expect(exitCode).toBe(0);
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
    expect(again.text).toMatch(/\(cached\)/);
  });

  test.each([
    ["a command that fails", script("echo boom >&2; exit 3"), "BUILD_COMMAND_FAILED"],
    ["a command that is killed", script("sh -c 'kill -9 $$'; exit $?"), "BUILD_OUT_OF_MEMORY"],
    // Shows: docs/builds.md#what-hostile-repositories-come-to: never ends, takes all memory or all
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
  ])("%s", async (_, options, code) => {
    const result = await harness.build(options);
    expect(result).toMatchObject({ step: "build", code, exitCode: 1 });
    expect(result.lines.at(-1)).toMatchObject({ level: "error", message: result.message });
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: names a frontend of its own (`# syntax=`)
  test("an own Dockerfile that names a frontend is built by the platform's own", async () => {
    const server = createServer((_request, answer) => void answer.writeHead(500).end()).listen(
      0,
      "127.0.0.1",
    );
    await once(server, "listening");
    let asked = 0;
    server.on("request", () => {
      asked += 1;
    });
    const frontend = `127.0.0.1:${(server.address() as AddressInfo).port}/evil/frontend:1`;
    const Dockerfile = `# syntax=${frontend}\nFROM ${harness.host}/base/shell:1\nRUN echo built\n`;
    const { exitCode, text } = await harness.build({ files: { Dockerfile } });
    server.close();
    expect([exitCode, asked]).toEqual([0, 0]);
    expect(text).toContain("built");
  });

  test("an own Dockerfile begins with an image that is not there", async () => {
    const result = await harness.build({
      files: { Dockerfile: `FROM ${harness.host}/base/gone:1\nRUN id\n` },
    });
    expect(result).toMatchObject({ code: "BASE_IMAGE_UNAVAILABLE", exitCode: 1 });
  });
});

describe("an image that cannot be published", () => {
  test.each([
    ["as nobody listens", "PROJECT_PUBLISH_FAILED"],
    ["as the registry never answers", "PROJECT_PUBLISH_TIMEOUT"],
  ])("%s", async (_, code) => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    if (code === "PROJECT_PUBLISH_FAILED") {
      server.close();
    }
    const work = join(harness.folder, "base");
    const error = await pushStep({
      task: { step: "push", repository: `127.0.0.1:${port}/shop/one`, maxImageBytes: 1e9, timeoutSeconds: 2 },
      log: quiet,
      paths: { work, secrets: join(work, "secrets"), cache: work },
      pauses: [],
    }).catch((reason: StepError) => reason);
    server.closeAllConnections();
    server.close();
    expect(error).toMatchObject({ failure: { code } });
  });
});
