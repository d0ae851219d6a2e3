/** What happens to builds when the platform's parts die under them: one published version, every line of the log once. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildsRegistryHost } from "../../hack/cluster/addresses.ts";
import { ensureBuilds } from "../../hack/cluster/builds/index.ts";
import { paths } from "../../hack/cluster/components.ts";
import { ensurePki } from "../../hack/cluster/pki.ts";
import { stopDaemon } from "../../hack/cluster/processes.ts";
import { run } from "../../hack/lib/exec.ts";
import { logDir } from "../../hack/lib/paths.ts";
import { isLong } from "../kit/long.ts";
import { apiClient, deleteProjects, uniqueName, untilStatus } from "./support/api.ts";
import { createGitProject, listBuilds, readLog, untilBuilt, untilEnded } from "./support/builds.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { acquireExclusive } from "./support/exclusive.ts";
import { connectRepository, createRepository, type Repository } from "./support/git.ts";
import { throughIngress } from "./support/ingress.ts";
import { replaceLeader } from "./support/operator.ts";
import { machineProcess } from "./support/process.ts";
import { namespaceOf, stack } from "./support/stack.ts";

const LINES = 20;

const call = apiClient();
let repository: Repository;
let project: { id: string; domain: string };
let version = 0;

/** Its build says each of its lines once, slowly enough for faults to come in between. */
const files = (says: number) => ({
  Dockerfile: `FROM ${buildsRegistryHost}/base/node:24
COPY server.js /app/server.js
RUN for i in $(seq ${LINES}); do echo "line $i of version ${says}."; sleep 0.2; done
USER 1000:1000
CMD ["node", "/app/server.js"]
`,
  "server.js": `require("node:http").createServer((_, answer) => answer.end("${says}")).listen(8080);
process.on("SIGTERM", () => process.exit(0));
`,
});

let release: (() => void) | undefined;
beforeAll(async () => {
  repository = await createRepository(uniqueName("faults"), files(version));
  const created = await createGitProject(call, uniqueName("faults"), await connectRepository(repository), {
    source: { auto_deploy: false },
    build: { runtime: "dockerfile", version: undefined, start_command: undefined },
  });
  project = { id: created.project_id, domain: created.domain };
  await untilBuilt(call, project.id, created.build_id);
  await untilStatus(call, project.id, "running");
  release = await acquireExclusive("builds");
}, 1_500_000);
afterAll(async () => {
  try {
    if (project) {
      await deleteProjects(call, [project.id]);
    }
    await repository?.remove();
  } finally {
    release?.();
  }
});

/** Commits a version and requests its build. @returns the build's id */
async function deploy(): Promise<string> {
  version += 1;
  await repository.commit(files(version));
  const answer = await call<{ build_id: string }>("POST", `/v1/project/${project.id}/deploy`);
  expect(answer.status).toBe(202);
  return answer.body.data?.build_id ?? "";
}

interface BuildObject {
  readonly status?: { readonly phase?: string; readonly step?: string };
}
const untilStep = (build: string, step: string): Promise<void> =>
  eventually(
    async () => {
      const { status } = (await cluster.custom.getNamespacedCustomObject({
        group: "slipway.dev",
        version: "v1alpha1",
        namespace: namespaceOf(stack.organization),
        plural: "builds",
        name: build,
      })) as BuildObject;
      expect(status?.step).toBe(step);
    },
    { every: 50, within: 120_000 },
  );

/** Steps of which the log shows that they have begun: planning is a moment, and no operator may lead while another step runs. */
const untilLogged = (build: string, logged: string): Promise<void> =>
  eventually(
    async () => {
      expect((await readLog(call, project.id, build)).map(({ step }) => step)).toContain(logged);
    },
    { every: 50, within: 120_000 },
  );

/** The newest version serves, its build's log has every line once and in order, and it was deployed once. */
async function expectPublishedOnce(build: string, deploymentsBefore: number): Promise<void> {
  await untilBuilt(call, project.id, build);
  await eventually(async () => {
    expect(await throughIngress(project.domain)).toEqual({ status: 200, text: String(version) });
  });
  const log = await readLog(call, project.id, build);
  const sequences = log.map(({ sequence }) => sequence);
  expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
  const said = log.flatMap(({ message }) => /line (\d+) of version \d+\.$/.exec(message)?.[1] ?? []);
  // The Dockerfile's own text has the line too, without its number.
  expect(said.map(Number)).toEqual(Array.from({ length: LINES }, (_, index) => index + 1));
  expect(await deployments()).toBe(deploymentsBefore + 1);
}

const deployments = async (): Promise<number> =>
  (await call<unknown[]>("GET", `/v1/project/${project.id}/historic/deployments`)).body.data?.length ?? 0;

describe("a build is published once", () => {
  // The short form kills it where most can go wrong; tests of the controller, at each of its writes.
  const steps = isLong ? ["fetch", "plan", "build", "push", "publish"] : ["publish"];
  // Shows: docs/builds.md#tested-on-the-stack: the operator killed with SIGKILL in each step (in the
  test.each(steps)("though the leading operator is killed in step %s", { timeout: 400_000 }, async (step) => {
    const before = await deployments();
    const build = await deploy();
    await (step === "plan" ? untilLogged(build, step) : untilStep(build, step));
    await replaceLeader();
    await expectPublishedOnce(build, before);
  });

  const away = isLong ? 60 : 20;
  // Shows: docs/builds.md#tested-on-the-stack: the apiserver stopped, the Git server unavailable for a
  test(`though the Git server is away for ${away} s when it is fetched, and the apiserver frozen for 5 s in the middle`, {
    timeout: 400_000,
  }, async () => {
    const before = await deployments();
    const build = await deploy();
    await stopDaemon("git");
    await sleep(away * 1_000);
    await ensureBuilds(await ensurePki(), Number(new URL(stack.url).port), join(logDir, "test"));
    await untilLogged(build, "build");
    const apiserver = await machineProcess("kube-apiserver --bind-address=0.0.0.0");
    process.kill(apiserver, "SIGSTOP");
    await sleep(5_000);
    process.kill(apiserver, "SIGCONT");
    await expectPublishedOnce(build, before);
  });
});

// Shows: docs/builds.md#tested-on-the-stack: a registry whose disk is full
test("a build fails with a message when the registry is full, and the previous version serves", {
  timeout: 400_000,
}, async () => {
  const before = await throughIngress(project.domain);
  const folder = join(
    paths.buildsRegistry,
    "docker/registry/v2/repositories",
    stack.organization,
    project.id,
  );
  await mkdir(folder, { recursive: true });
  await run("mount", ["-t", "tmpfs", "-o", "size=64k", "slipway-full", folder]);
  try {
    const ended = await untilEnded(call, project.id, await deploy());
    expect(ended).toMatchObject({ status: "failed", error_code: "PROJECT_PUBLISH_FAILED" });
    expect(await throughIngress(project.domain)).toEqual(before);
  } finally {
    // The registry may still have a file open that it could not fill.
    await run("umount", ["-l", folder]);
  }
  const count = await deployments();
  await expectPublishedOnce(await deploy(), count);
  expect((await listBuilds(call, project.id)).map(({ status }) => status)).toContain("failed");
});
