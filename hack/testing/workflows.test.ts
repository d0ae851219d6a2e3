import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { kubernetesVersions } from "../cluster/node-images.ts";
import { root } from "../lib/paths.ts";
import { commandsInScript, commandsOf, problemsOf, readWorkflows } from "./workflows.ts";

const workflows = await readWorkflows();
const jobs = workflows.flatMap(({ file, jobs }) =>
  Object.entries(jobs).map(([name, job]) => ({ name: `${file} ${name}`, job })),
);

test("each step runs a script of the repository, with options that it has", async () => {
  const commands = workflows.flatMap(commandsOf);
  expect(commands.length).toBeGreaterThan(5);
  expect((await Promise.all(commands.map(problemsOf))).flat()).toEqual([]);
});

test("the scripts of .ci call scripts of the repository with options that they have", async () => {
  const folder = join(root, ".ci");
  const scripts = await Promise.all(
    (await readdir(folder)).map((file) => readFile(join(folder, file), "utf8")),
  );
  const commands = scripts.flatMap(commandsInScript);
  expect(commands).toContainEqual(expect.stringMatching(/^hack\/up\.sh --cluster kind --kubernetes /));
  expect((await Promise.all(commands.map(problemsOf))).flat()).toEqual([]);
});

test("the tests that .ci/kind.sh names exist", async () => {
  const named = (await readFile(join(root, ".ci/kind.sh"), "utf8")).match(/test\/e2e\/\S+\.ts/g) ?? [];
  const files = (await readdir(join(root, "test/e2e"))).map((file) => `test/e2e/${file}`);
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((file) => !files.includes(file))).toEqual([]);
});

test.each([
  ["npm run build", "is not one script"],
  ["hack/test.sh --only unit && rm -r dist", "is not one script"],
  ["hack/nothing.sh", "there is no program hack/nothing.sh"],
  ["hack/test.sh --fast", "hack/test.sh --help knows no --fast"],
  ["hack/test.sh --only unit,e2", "hack/test.sh --help knows no e2"],
  ["hack/up.sh --cluster kind --kube 1.33", "hack/up.sh --help knows no --kube"],
  ['hack/release.sh "$version" --sign key', "hack/release.sh --help knows no --sign"],
])("a step that runs `%s` is found", async (command, problem) => {
  expect(await problemsOf(command)).toEqual([expect.stringContaining(problem)]);
});

test("actions are pinned by commit, with their version beside it", () => {
  const used = workflows.flatMap(({ text }) => [...text.matchAll(/uses: (.*)$/gm)].map(([, what]) => what));
  expect(used.length).toBeGreaterThan(5);
  const pinned = /^(\.\/\.github\/workflows\/[\w-]+\.yml|actions\/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/;
  expect(used.filter((what) => !pinned.test(what ?? ""))).toEqual([]);
});

test("jobs read the sources and may do nothing else, but the one that publishes", () => {
  for (const { permissions } of workflows) {
    expect(permissions).toEqual({ contents: "read" });
  }
  expect(jobs.filter(({ job }) => job.permissions).map(({ name }) => name)).toEqual(["release.yml publish"]);
});

test("jobs end, and one workflow does not cancel the other", () => {
  expect(jobs.filter(({ job }) => !job.uses && !job["timeout-minutes"])).toEqual([]);
  const groups = workflows.map(({ concurrency }) => concurrency?.group);
  expect(groups).not.toContain(undefined);
  expect(new Set(groups).size).toBe(workflows.length);
});

test("the end-to-end tests run on every version of Kubernetes that kind's node can have", () => {
  const kind = jobs.find(({ name }) => name === "ci.yml kind")?.job.strategy;
  expect(kind).toEqual({ "fail-fast": false, matrix: { kubernetes: kubernetesVersions } });
});
