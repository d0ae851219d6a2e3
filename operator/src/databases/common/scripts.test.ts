import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, test } from "vitest";
import { readScript, renderScript } from "./scripts.ts";

const folder = mkdtempSync(join(tmpdir(), "slipway-scripts-"));
const write = (name: string, text: string): URL => {
  writeFileSync(join(folder, name), text);
  return pathToFileURL(join(folder, name));
};

afterAll(() => rmSync(folder, { recursive: true }));

test("the container gets the program without what is for readers and the linter, and with the files that it includes", () => {
  write("client.sh", '# shellcheck shell=sh\n# Connects.\n\nclient() { echo "$@"; }\n');
  write("count.sql", "-- Counts.\n\nSELECT 1;\n");
  const file = write(
    "start.sh",
    "# shellcheck shell=sh\n# Starts.\n\nset -u\n. ./client.sh\n\n  # shellcheck disable=SC1007\n  a= b=\n# kept\nclient <<'SQL'\n\\ir ./count.sql\nSQL\n",
  );
  expect(readScript(file)).toBe(
    "set -u\nclient() { echo \"$@\"; }\n\n  a= b=\n# kept\nclient <<'SQL'\nSELECT 1;\nSQL\n",
  );
});

test("every placeholder has a value", () => {
  expect(renderScript("cd __RUN__ && kill -__SIGNAL__ 1", { RUN: "/run", SIGNAL: 9 })).toBe(
    "cd /run && kill -9 1",
  );
  expect(() => renderScript("cd __RUN__", {})).toThrow("no value for the placeholder RUN");
});
