import { expect, test } from "vitest";
import { chooseCluster } from "./choice.ts";

const none = { context: undefined, cluster: undefined, engine: undefined };
const debian = { dockerAnswers: false, podman: true, linux: true, root: true };

test.each([
  ["a named context before everything", { ...none, context: "prod" }, debian, "context"],
  ["kind where Docker answers", none, { ...debian, dockerAnswers: true }, "kind"],
  ["kind without root", none, { dockerAnswers: true, podman: false, linux: false, root: false }, "kind"],
  ["embedded where no Docker answers", none, debian, "embedded"],
  [
    "embedded when requested beside Docker",
    { ...none, cluster: "embedded" as const },
    { ...debian, dockerAnswers: true },
    "embedded",
  ],
])("takes %s", (_, options, machine, cluster) => {
  expect(chooseCluster(options, machine).cluster).toBe(cluster);
});

test("kind's engine is Docker where it answers, else podman, unless one is requested", () => {
  const kind = { ...none, cluster: "kind" as const };
  const both = { ...debian, dockerAnswers: true };
  expect(chooseCluster(kind, debian).engine).toBe("podman");
  expect(chooseCluster(kind, both).engine).toBe("docker");
  expect(chooseCluster(none, both).engine).toBe("docker");
  expect(chooseCluster({ ...kind, engine: "podman" }, both).engine).toBe("podman");
});

test("states why", () => {
  expect(chooseCluster(none, debian).why).toBe("no Docker engine answers");
  expect(chooseCluster({ ...none, context: "prod" }, debian).why).toBe("--context prod");
});

test.each([
  [
    "kind without an engine",
    { ...none, cluster: "kind" as const },
    { ...debian, podman: false },
    "none answers",
  ],
  [
    "Docker that does not answer",
    { ...none, cluster: "kind" as const, engine: "docker" as const },
    debian,
    "no Docker",
  ],
  ["embedded without root", none, { ...debian, root: false }, "needs root"],
  ["embedded elsewhere", none, { ...debian, linux: false }, "needs Linux"],
])("refuses %s", (_, options, machine, message) => {
  expect(() => chooseCluster(options, machine)).toThrow(message);
});
