/**
 * Golden files: `testdata/<case>/` beside a test has `input.yaml`, and either `want.yaml`, all that is derived from it, or
 * `want.diff`, its differences to another case, which its first line names. `UPDATE_GOLDEN=1` writes what is derived now.
 */

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { KubernetesObject } from "@slipway/controller-runtime";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import { differenceOf } from "./golden-difference.ts";

const isUpdate = process.env.UPDATE_GOLDEN === "1";

/**
 * Runs a pure function over every case of a folder and compares its result, as YAML documents.
 * @param run is given the parsed input
 */
export function goldenTests(folder: string, run: (input: unknown) => readonly unknown[]): void {
  const cases = readdirSync(folder);
  const resultOf = (name: string) => run(parse(readFileSync(join(folder, name, "input.yaml"), "utf8")));
  describe.each(cases)("%s", (name) => {
    test("is as in testdata", () => {
      const difference = join(folder, name, "want.diff");
      if (existsSync(difference)) {
        const [, base = ""] = /^--- (\S+)\n/.exec(readFileSync(difference, "utf8")) ?? [];
        expect(cases, `${difference} must begin with "--- " and a case`).toContain(base);
        const objects = [base, name].map((one) => resultOf(one) as KubernetesObject[]);
        compareText(difference, `--- ${base}\n${differenceOf(objects[0] ?? [], objects[1] ?? [])}`);
      } else {
        compareObjects(join(folder, name, "want.yaml"), resultOf(name));
      }
    });
  });
}

function compareText(file: string, result: string): void {
  if (isUpdate) {
    writeFileSync(file, result);
  }
  expect(result).toBe(readFileSync(file, "utf8"));
}

function compareObjects(file: string, result: readonly unknown[]): void {
  if (isUpdate) {
    writeFileSync(
      file,
      result.map((object) => stringify(object, { aliasDuplicateObjects: false })).join("---\n"),
    );
  }
  expect(existsSync(file), "run with UPDATE_GOLDEN=1 to write it").toBe(true);
  const want = parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.toJS() as unknown);
  // Through JSON, since what is undefined is not sent.
  expect(JSON.parse(JSON.stringify(result))).toEqual(want);
}
