import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { BuildHarness, CANARY } from "../../test/kit/builder/build-harness.ts";
import { Repository } from "../../test/kit/builder/repository.ts";
import { backendNames } from "./task.ts";

/** Repositories of somebody who means harm, through all steps. What a pod and its network keep from them is tested on a cluster. */

describe.each(backendNames)("with %s", (backend) => {
  let harness: BuildHarness;
  let repository: Repository;
  /** What no program of the repository's shall have made. */
  let mark: string;

  beforeAll(async () => {
    harness = await BuildHarness.start(backend);
    await writeFile(join(harness.folder, "outside.txt"), "OUTSIDE-OF-IT");
  });
  afterAll(() => harness?.stop());
  beforeEach(async () => {
    repository = await Repository.create();
    mark = join(harness.folder, "mark");
  });
  afterEach(async () => {
    expect(existsSync(mark)).toBe(false);
    await repository.remove();
  });

  const built = (more: Parameters<BuildHarness["build"]>[0] = {}) =>
    harness.build({ repository: repository.url, ...more });

  /** All that an image holds, unpacked. */
  async function contentOf(image: string): Promise<string> {
    const blobs = join(image, "blobs/sha256");
    const parts = await Promise.all(
      (await readdir(blobs)).map(async (name) => {
        const bytes = await readFile(join(blobs, name));
        return (bytes[0] === 0x1f ? gunzipSync(bytes) : bytes).toString("latin1");
      }),
    );
    return parts.join("");
  }

  /** A line of a Dockerfile that shows a file, with a shell's own words alone. Its complaints would stand in the middle of a line. */
  const show = (path: string) =>
    `RUN { while IFS= read -r line || [ -n "$line" ]; do echo "shown $line"; done < ${path}; } 2>/dev/null || echo "shown nothing"`;

  /** The same, into a file of the image. */
  const kept = (line: string, number: number) => `${line.replace("RUN ", "RUN { ")}; } > /seen-${number}`;

  describe("links", () => {
    // Shows: docs/builds.md#what-hostile-repositories-come-to: links out of its folder, for Dockerfiles to
    test("out of the build's folder lead to nothing of the machine's", async () => {
      const outside = join(harness.folder, "outside.txt");
      await repository.commit(
        "Links",
        {
          Dockerfile: [
            `FROM ${harness.host}/base/shell:1`,
            "COPY . /all",
            kept(show("/all/absolute"), 1),
            kept(show("/all/relative"), 2),
            kept(show("/all/folder/outside.txt"), 3),
            "",
          ].join("\n"),
        },
        { absolute: outside, relative: "../../../outside.txt", folder: harness.folder },
      );
      const { exitCode, text, image } = await built();
      expect(exitCode).toBe(0);
      const content = await contentOf(image);
      expect(content.match(/\0shown nothing\n/g)).toHaveLength(3);
      expect(content + text).not.toContain("OUTSIDE-OF-IT");
    });

    test("that a Dockerfile copies by name are not followed either", async () => {
      const outside = join(harness.folder, "outside.txt");
      const Dockerfile = `FROM ${harness.host}/base/shell:1\nCOPY absolute /copy\n${show("/copy")}\n`;
      await repository.commit("A link", { Dockerfile }, { absolute: outside });
      const { text, exitCode } = await built();
      expect(text).not.toContain("OUTSIDE-OF-IT");
      if (exitCode !== 0) {
        // The process that copies may have ended before buildah has written to it what to copy.
        expect(text).toMatch(
          backend === "buildkit" ? /not found/ : /no such file|error encoding request for copier subprocess/,
        );
      }
    });

    // Shows: docs/builds.md#what-hostile-repositories-come-to: links out of its folder, for Dockerfiles to
    test("in the place of files that the planner reads are no files to it", async () => {
      const outside = join(harness.folder, "outside.txt");
      await repository.commit("A link", { README: "1" }, { Dockerfile: outside, "package.json": outside });
      const { step, code, text } = await built();
      expect([step, code]).toEqual(["plan", "RUNTIME_NOT_DETECTED"]);
      expect(text).not.toContain("OUTSIDE-OF-IT");
    });
  });

  describe("git's own files", () => {
    // Shows: docs/builds.md#what-hostile-repositories-come-to: has a folder `.git`, by that name or one
    test.each([[".git"], [".GIT"], ["git~1"], [".g\u200cit"]])(
      "in a folder called %j are not checked out",
      async (name) => {
        const sha = await repository.commit("Config", { config: `[core]\n\tfsmonitor = "touch ${mark}"\n` });
        const blob = await repository.git("rev-parse", `${sha}:config`);
        const object = Buffer.concat([Buffer.from("100644 config\0"), Buffer.from(blob, "hex")]);
        const inner = await writeTree(object);
        const outer = await writeTree(
          Buffer.concat([Buffer.from(`40000 ${name}\0`), Buffer.from(inner, "hex")]),
        );
        const commit = await repository.git("commit-tree", "-m", "Tricks", outer);
        await repository.git("update-ref", "refs/heads/main", commit);
        const { step, exitCode } = await built();
        expect([step, exitCode]).toEqual(["fetch", 1]);
      },
    );

    /** A tree of the repository from its bytes, which git itself would refuse to write. */
    async function writeTree(bytes: Buffer): Promise<string> {
      const file = join(repository.folder, "..", `tree-${process.pid}`);
      await writeFile(file, bytes);
      return repository.git("hash-object", "-t", "tree", "-w", "--literally", file);
    }

    // Shows: docs/builds.md#what-hostile-repositories-come-to: contains hooks, filters, a `.gitconfig`
    test("hooks, filters and updates of the repository's are not run", async () => {
      const run = `#!/bin/sh\ntouch ${mark}\n`;
      await repository.commit("Hooks", {
        Dockerfile: `FROM ${harness.host}/base/shell:1\nCOPY . /all\n`,
        ".gitattributes": "* filter=evil diff=evil merge=evil\n",
        ".gitconfig": `[core]\n\thooksPath = hooks\n[filter "evil"]\n\tsmudge = touch ${mark}\n`,
        ".gitmodules": `[submodule "x"]\n\tpath = x\n\turl = ../x\n\tupdate = !touch ${mark}\n`,
        "hooks/post-checkout": run,
        ".githooks/post-checkout": run,
        ".husky/post-checkout": run,
      });
      await repository.git("config", "core.hooksPath", "hooks");
      expect((await built()).exitCode).toBe(0);
    });
  });

  describe("names", () => {
    // Shows: docs/builds.md#what-hostile-repositories-come-to: has names or settings with line breaks
    test("of files with line breaks write no line of a Dockerfile and no line of the log", async () => {
      const forged = '{"seq":1,"step":"push","message":"forged"}';
      await repository.commit("Names", {
        "package.json": JSON.stringify({
          name: "x",
          main: `a\nRUN touch ${mark}\n`,
          engines: { node: "24\nRUN id" },
        }),
        "package-lock.json": JSON.stringify({ lockfileVersion: 3, packages: {} }),
        [`a\nRUN id >&2\n${forged}`]: "1",
        "server.js\nUSER root": "1",
        Procfile: "web: node a.js\\\nUSER root\n",
      });
      const { plan, lines } = await built({ settings: { runtime: "node" } });
      const dockerfile = existsSync(join(plan, "Dockerfile"))
        ? await readFile(join(plan, "Dockerfile"), "utf8")
        : "";
      expect(dockerfile.split("\n").filter((line) => /^(RUN (touch|id)|USER root)/.test(line))).toEqual([]);
      expect(lines.every((line) => line !== undefined && line.message !== "forged")).toBe(true);
    });

    // Shows: docs/builds.md#what-hostile-repositories-come-to: has names or settings with line breaks
    test("of settings with line breaks are refused", async () => {
      await repository.commit("One", { "server.js": "1" });
      const settings = { runtime: "node", startCommand: "node server.js\nUSER root" };
      expect(await built({ settings })).toMatchObject({ step: "plan", code: "BUILD_SETTINGS_INVALID" });
    });
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: has a huge file, packed small or large, or
  test("a file that is huge when it is unpacked is not unpacked", async () => {
    await repository.commit("Zeros", { zeros: Buffer.alloc(5_000_000) });
    const { code, source } = await built();
    expect(code).toBe("GIT_REPOSITORY_TOO_LARGE");
    expect(existsSync(source)).toBe(false);
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: begins with another tenant's image, or with
  test("another tenant's repository is no base image, and the token for base images is offered to no other registry", async () => {
    const authorizations: (string | undefined)[] = [];
    const server = createServer((request, answer) => {
      authorizations.push(request.headers.authorization);
      const { port } = server.address() as AddressInfo;
      answer.setHeader("www-authenticate", `Bearer realm="http://127.0.0.1:${port}/token",service="r"`);
      answer
        .writeHead(401, { "content-type": "application/json" })
        .end('{"errors":[{"code":"UNAUTHORIZED"}]}');
    }).listen(0, "127.0.0.1");
    let connections = 0;
    server.on("connection", () => {
      connections += 1;
    });
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await repository.commit("From", { Dockerfile: `FROM 127.0.0.1:${port}/oother/pshop:1\nRUN id\n` });
    const { code, exitCode } = await built();
    server.closeAllConnections();
    server.close();
    expect([code, exitCode]).toEqual(["BASE_IMAGE_UNAVAILABLE", 1]);
    expect(connections).toBeGreaterThan(0);
    // buildah speaks plain HTTP to nobody but its own mirror: it has not come to a request.
    if (backend === "buildkit") {
      expect(authorizations.length).toBeGreaterThan(0);
    }
    expect(authorizations.every((sent) => sent === undefined)).toBe(true);
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: prints its variables, also in base64 at any
  test("variables that a step prints, plain or in base64, are not in the log, and in no layer", async () => {
    const base64 = Buffer.from(CANARY).toString("base64");
    const shifted = Buffer.from(`x${CANARY}`).toString("base64");
    await repository.commit("Print", {
      "server.js": "1",
      Dockerfile: [
        `FROM ${harness.host}/base/shell:1`,
        `RUN --mount=type=secret,id=TOKEN read -r line < /run/secrets/TOKEN; echo "plain $line"`,
        // What `base64` would print.
        `RUN echo encoded ${base64} ${shifted}`,
        "",
      ].join("\n"),
    });
    const { exitCode, text, image } = await built();
    expect(exitCode).toBe(0);
    expect(text).toContain("plain ***");
    expect(text).not.toContain(base64.slice(0, 20));
    expect(text).not.toContain("canary");
    expect(await contentOf(image)).not.toContain(CANARY);
  });
});
