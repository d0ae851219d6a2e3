import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { exportScript, readVariables, variablesRevision } from "./variables.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-variables-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("a shell that reads the script has every value exactly", async () => {
  const value = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.constantFrom("'", "$(id)", "a\nb", "\\", '"', "`id`", "!"),
  );
  const values = fc.sample(
    value.filter((text) => !text.includes("\u0000") && text.isWellFormed()),
    60,
  );
  const variables = Object.fromEntries(values.map((text, index) => [`NAME_${index}`, text]));
  const script = join(folder, "script");
  await writeFile(script, exportScript({}, variables).text);
  const print = Object.keys(variables).map((name) => `printf '%s\\0' "$${name}"`);
  const printed = execFileSync("/bin/sh", ["-c", `. ${script}; ${print.join(";")}`], { env: {} }).toString(
    "utf8",
  );
  expect(printed.split("\0").slice(0, -1)).toEqual(values);
});

test("what no shell can export, and what a step depends on, is left out and named", () => {
  const { text, leftOut } = exportScript({}, { "a.b": "1", PATH: "/x", OK: "2", IFS: ",", "x-y": "3" });
  expect(text).toBe("export OK='2'\n");
  expect(leftOut).toEqual(["a.b", "PATH", "IFS", "x-y"]);
});

test("the project's value wins over the platform's, and both over the authorities'", () => {
  const { text } = exportScript(
    { PIP_INDEX_URL: "a", PIP_CERT: "/tools" },
    { PIP_INDEX_URL: "b" },
    "/run/secrets/ca",
  );
  expect(text).toContain("export PIP_INDEX_URL='b'\n");
  expect(text).toContain("export PIP_CERT='/tools'\n");
  expect(text).toContain("export NODE_EXTRA_CA_CERTS='/run/secrets/ca'\n");
});

test("variables beyond the size limit of a secret are left out", () => {
  const large = Object.fromEntries(
    Array.from({ length: 20 }, (_, index) => [`V${index}`, "x".repeat(32_000)]),
  );
  const { text, leftOut } = exportScript({}, large);
  expect(Buffer.byteLength(text)).toBeLessThan(500 * 1024);
  expect(leftOut.length).toBeGreaterThan(0);
});

test("variables are read from a mounted Secret", async () => {
  await mkdir(join(folder, "..data"));
  await writeFile(join(folder, "TOKEN"), "value\n");
  expect(await readVariables(folder)).toEqual({ TOKEN: "value\n" });
  expect(await readVariables(join(folder, "gone"))).toEqual({});
});

test("the revision follows the variables, and another cache has another", async () => {
  const [one, two] = [join(folder, "one"), join(folder, "two")];
  const first = await variablesRevision("A=1", one);
  expect(await variablesRevision("A=1", one)).toBe(first);
  expect(await variablesRevision("A=2", one)).not.toBe(first);
  expect(await variablesRevision("A=1", two)).not.toBe(first);
  expect((await readFile(join(one, "revision-key"))).length).toBe(32);
});
