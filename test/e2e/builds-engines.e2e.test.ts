/** Builds by the engine that is not the first choice: asked for, and taken where the first one cannot run. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { buildsRegistryHost } from "../../hack/cluster/addresses.ts";
import { builderSeccomp } from "../../hack/cluster/builds/seccomp.ts";
import { paths } from "../../hack/cluster/components.ts";
import { isLong } from "../kit/long.ts";
import { apiClient, deleteProjects, uniqueName } from "./support/api.ts";
import { attackBuild } from "./support/attack.ts";
import { createGitProject, readLog, untilBuilt, untilEnded } from "./support/builds.ts";
import { useEngine } from "./support/engine.ts";
import { eventually } from "./support/eventually.ts";
import { acquireExclusive } from "./support/exclusive.ts";
import { connectRepository, createRepository, type Repository } from "./support/git.ts";
import { throughIngress } from "./support/ingress.ts";

const call = apiClient();
const made: string[] = [];
const repositories: Repository[] = [];
let source: { connectionId: string; repositoryId: string };
/** Puts the stack's own settings back. */
let restore: (() => Promise<void>) | undefined;

const about = { name: "app", version: "1.0.0" };
const server = (answer: string): string =>
  `require("node:http").createServer((_, answer) => answer.end(${answer})).listen(process.env.PORT ?? 8080);\n`;
const files = {
  "node/package.json": JSON.stringify({
    ...about,
    dependencies: { ms: "2.1.3" },
    scripts: { start: "node server.js" },
  }),
  "node/package-lock.json": JSON.stringify({
    ...about,
    lockfileVersion: 3,
    requires: true,
    packages: {
      "": { ...about, dependencies: { ms: "2.1.3" } },
      "node_modules/ms": {
        version: "2.1.3",
        resolved: "https://registry.npmjs.org/ms/-/ms-2.1.3.tgz",
        integrity:
          "sha512-6FlzubTLZG3J2a/NVCAleEhjzq5oxgHyaCU9yYXvcLsvoVaHJq/s5xXI6/XXP6tz7R9xAOtHnSO/tXtF3WRTlA==",
      },
    },
  }),
  "node/server.js": server('"node " + require("ms")("2 days")'),
  "docker/Dockerfile": `FROM ${buildsRegistryHost}/base/node:24
COPY server.js /server.js
USER 1000:1000
CMD ["node", "/server.js"]
`,
  "docker/server.js": server('"docker"'),
  "gone/Dockerfile": `FROM ${buildsRegistryHost}/oother/pshop:1\n`,
};

beforeAll(async () => {
  const repository = await createRepository(uniqueName("engines"), files);
  repositories.push(repository);
  source = await connectRepository(repository);
});
afterAll(async () => {
  // Another file may have stopped the Git server.
  const release = await acquireExclusive("builds");
  try {
    await deleteProjects(call, made);
    for (const repository of repositories) {
      await repository.remove();
    }
  } finally {
    release();
  }
}, 1_000_000);

/** Creates a project that builds a folder of the repository. */
async function project(folder: string, build: object) {
  const created = await createGitProject(call, uniqueName(folder), source, {
    source: { auto_deploy: false },
    build: { version: undefined, start_command: undefined, context_path: folder, ...build },
  });
  made.push(created.project_id);
  return created;
}

const node = { runtime: "node", version: "24" };
/** First line of the step that makes the image. */
const engineLine = (log: Awaited<ReturnType<typeof readLog>>): string | undefined =>
  log.find(({ step }) => step === "build")?.message;

// Its own tests build and fail with the same programs; the engine auto, below, shows that it builds on the stack.
describe("with the engine buildah (--long)", { concurrent: true, skip: !isLong, timeout: 400_000 }, () => {
  // It may wait for files that have builds to themselves.
  beforeAll(async () => {
    restore = await useEngine("buildah");
  }, 1_000_000);
  afterAll(async () => {
    await restore?.();
    restore = undefined;
  });

  // Shows: docs/builds.md#tested-on-the-stack: applications in Node and of a Dockerfile, failures, and a
  test.each([
    {
      what: "Node with a dependency",
      folder: "node",
      build: node,
      answers: "node 172800000",
    },
    {
      what: "a Dockerfile of its own",
      folder: "docker",
      build: { runtime: "dockerfile" },
      answers: "docker",
    },
  ])("an application in $what is built and served", async ({ folder, build, answers }) => {
    const { project_id: id, build_id, domain } = await project(folder, build);
    await untilBuilt(call, id, build_id, 300_000);
    expect(engineLine(await readLog(call, id, build_id))).toBe("The image is made by buildah.");
    await eventually(async () => {
      expect(await throughIngress(domain)).toEqual({ status: 200, text: answers });
    });
  });

  // Shows: docs/builds.md#tested-on-the-stack: applications in Node and of a Dockerfile, failures, and a
  test.each([
    {
      what: "a command that fails",
      folder: "node",
      build: { ...node, build_command: "exit 7" },
      code: "BUILD_COMMAND_FAILED",
      says: /exit code 7/,
    },
    {
      what: "a command that is killed",
      folder: "node",
      build: { ...node, build_command: "kill -9 $$" },
      code: "BUILD_OUT_OF_MEMORY",
      says: /memory/,
    },
    {
      what: "another tenant's image",
      folder: "gone",
      build: { runtime: "dockerfile" },
      code: "BASE_IMAGE_UNAVAILABLE",
      says: /./,
    },
  ])("$what has the same code", async ({ folder, build, code, says }) => {
    const { project_id: id, build_id } = await project(folder, build);
    const ended = await untilEnded(call, id, build_id);
    expect(ended).toMatchObject({ status: "failed", error_code: code });
    expect(ended.error_message).toMatch(says);
  });

  // Shows: docs/builds.md#what-hostile-repositories-come-to: asks buildah's registry on loopback for
  // Shows: docs/builds.md#tested-on-the-stack: applications in Node and of a Dockerfile, failures, and a
  test("nothing gets out of a build that attacks", async () => {
    const lines = await attackBuild(call, (each) => {
      if (typeof each === "string") {
        made.push(each);
      } else {
        repositories.push(each);
      }
    });
    expect(lines).toContain("The image is made by buildah.");
    // It found the registry on loopback, and was refused there.
    expect(lines.join("\n")).toMatch(/"what":"loopback","result":\[\d/);
  });
});

describe("by the engine auto", { timeout: 1_000_000 }, () => {
  const profile = "slipway/without-pivot-root.json";
  const file = join(paths.kubelet, "seccomp", profile);
  afterEach(async () => {
    await restore?.();
    restore = undefined;
    await rm(file, { force: true });
  });

  // Shows: docs/builds.md#tested-on-the-stack: BuildKit starts and cannot run a step: buildah builds
  test("an application is built by buildah where BuildKit starts, but cannot run a step", async () => {
    // runc needs this call, buildah's chroot does not.
    await writeFile(file, JSON.stringify(builderSeccomp(["pivot_root"])));
    restore = await useEngine("auto", { seccompProfile: profile });
    const { project_id: id, build_id, domain } = await project("node", node);
    await untilBuilt(call, id, build_id, 300_000);
    expect(engineLine(await readLog(call, id, build_id))).toMatch(
      /^The image is made by buildah; BuildKit cannot run here: .*pivot_root/,
    );
    await eventually(async () => {
      expect(await throughIngress(domain)).toEqual({ status: 200, text: "node 172800000" });
    });
  });

  // Shows: docs/builds.md#tested-on-the-stack: BuildKit starts and cannot run a step: buildah builds
  test.skipIf(!isLong)(
    "a build fails where neither has the rights that it needs, and says what is missing (--long)",
    async () => {
      // The container runtime's own profile refuses user namespaces.
      restore = await useEngine("auto", { seccompProfile: "Unconfined", tries: 1 });
      const { project_id: id, build_id } = await project("node", node);
      const ended = await untilEnded(call, id, build_id);
      expect(ended).toMatchObject({ status: "failed", error_code: "BUILD_ENGINE_FAILED" });
      expect(ended.error_message).toMatch(
        /BuildKit cannot run here: no user namespaces.*; buildah cannot run here: no user/,
      );
    },
  );
});
