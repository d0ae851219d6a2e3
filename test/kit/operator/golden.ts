/** Golden files: `testdata/<case>/{input,want}.yaml` beside a test. `UPDATE_GOLDEN=1` writes what is there now. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";

/**
 * Runs a pure function over every case of a folder and compares what it gives, as YAML documents.
 * @param run is given the parsed input
 */
export function goldenTests(folder: string, run: (input: unknown) => readonly unknown[]): void {
  const cases = readdirSync(folder);
  describe.each(cases)("%s", (name) => {
    test("gives what testdata says", () => {
      const input = parse(readFileSync(join(folder, name, "input.yaml"), "utf8")) as unknown;
      const file = join(folder, name, "want.yaml");
      const got = run(input);
      if (process.env.UPDATE_GOLDEN === "1") {
        writeFileSync(
          file,
          got.map((object) => stringify(object, { aliasDuplicateObjects: false })).join("---\n"),
        );
      }
      expect(existsSync(file), "run with UPDATE_GOLDEN=1 to write it").toBe(true);
      const want = parseAllDocuments(readFileSync(file, "utf8")).map(
        (document) => document.toJS() as unknown,
      );
      // Through JSON, since what is undefined is not sent.
      expect(JSON.parse(JSON.stringify(got))).toEqual(want);
    });
  });
}
