import { expect, test } from "vitest";
import { chooseCluster } from "./choice.ts";

const none = { context: undefined, cluster: undefined };
const debian = { dockerAnswers: false, linux: true, root: true };

test.each([
  ["a named context before everything", { ...none, context: "prod" }, debian, "context"],
  ["kind where Docker answers", none, { ...debian, dockerAnswers: true }, "kind"],
  ["kind without root", none, { dockerAnswers: true, linux: false, root: false }, "kind"],
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

test("states why", () => {
  expect(chooseCluster(none, debian).why).toBe("no Docker engine answers");
  expect(chooseCluster({ ...none, context: "prod" }, debian).why).toBe("--context prod");
});

test.each([
  ["kind without Docker", { ...none, cluster: "kind" as const }, debian, "none answers"],
  ["embedded without root", none, { ...debian, root: false }, "needs root"],
  ["embedded elsewhere", none, { ...debian, linux: false }, "needs Linux"],
])("refuses %s", (_, options, machine, message) => {
  expect(() => chooseCluster(options, machine)).toThrow(message);
});
