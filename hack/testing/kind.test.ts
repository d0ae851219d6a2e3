import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../lib/paths.ts";
import { e2eNames, notOnKind, onKind } from "./kind.ts";

test("every end-to-end file runs on kind, or has a reason that it does not", () => {
  expect(e2eNames()).toEqual(expect.arrayContaining(Object.keys(notOnKind)));
  expect(onKind().length + Object.keys(notOnKind).length).toBe(e2eNames().length);
  expect(Object.values(notOnKind).every((why) => why.length > 20)).toBe(true);
});

test("what public CI runs on kind runs here, too", async () => {
  const script = await readFile(join(root, ".ci/kind.sh"), "utf8");
  const files = [...script.matchAll(/^ {2}(test\/e2e\/\S+)$/gm)].map(([, file]) => file);
  expect(files.length).toBeGreaterThan(5);
  expect(onKind()).toEqual(expect.arrayContaining(files));
});
