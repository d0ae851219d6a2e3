import { expect, test } from "vitest";
import { detectRuntime, fits } from "./detect.ts";
import { Tree } from "./input.ts";

test.each([
  ["24", "24", true],
  ["24", "v24.1.0", true],
  ["24", "^22.3 || >=24", true],
  ["24", ">=20 <24", false],
  ["22", ">=20 <24", true],
  ["24", "20.x", false],
  ["20", "20.x", true],
  ["24", "lts/*", true],
  ["24", "*", true],
  ["3.12", ">=3.12,<3.13", true],
  ["3.13", ">=3.12,<3.13", false],
  ["3.12", "3.12.*", true],
  ["3.13", "~=3.12", false],
  ["3.3", "ruby-3.3.5", true],
  ["1.25", ">=1.24", true],
  ["1.24", ">=1.25", false],
])("version %s in the range %s: %s", (version, range, expected) => {
  expect(fits(version, range)).toBe(expected);
});

test.each([
  [["Gemfile", "package.json"], "ruby"],
  [["Dockerfile", "package.json"], "dockerfile"],
  [["package.json", "index.html"], "node"],
  [["requirements.txt", "index.html"], "python"],
  [["index.php", "index.html"], "php"],
  [["index.html", "style.css"], "static"],
  [["main.py"], "python"],
])("%j is a folder for %s", (files, runtime) => {
  const tree = new Tree({ files, texts: { "package.json": '{"scripts":{"start":"node x"}}' } });
  expect(detectRuntime(tree, false).runtime).toBe(runtime);
});
