import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseEnv, readEnvFile, renderEnv } from "./env-file.ts";

const specialCharacters = {
  PLAIN: "http://127.0.0.1:8081",
  EMPTY: "",
  SPACES: "two words",
  QUOTES: `it's "quoted" $HOME \`id\` \\ end`,
  LIST: "a,b,c",
};

test("what is rendered is read back the same", () => {
  expect(parseEnv(renderEnv(specialCharacters))).toEqual(specialCharacters);
});

test("a shell that sources it sees the same values, and expands nothing", () => {
  const dir = mkdtempSync(join(tmpdir(), "env-file-"));
  try {
    const file = join(dir, "stack.env");
    writeFileSync(file, renderEnv(specialCharacters));
    for (const [key, value] of Object.entries(specialCharacters)) {
      const out = execFileSync("sh", ["-c", `. "$1"; printf %s "$${key}"`, "sh", file], { encoding: "utf8" });
      expect(out).toBe(value);
    }
    expect(readEnvFile(file)).toEqual(specialCharacters);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("keys without a value are left out", () => {
  expect(renderEnv({ A: "1", B: undefined })).toBe("A=1\n");
});

test("a name that is none and a value of two lines are refused", () => {
  expect(() => renderEnv({ "a-b": "1" })).toThrow("not a variable name: a-b");
  expect(() => renderEnv({ A: "1\nB=2" })).toThrow("the value of A spans lines");
});

test("a missing file has no values", () => {
  expect(readEnvFile("/nonexistent/stack.env")).toEqual({});
});
