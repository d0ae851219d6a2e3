import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

/** What browsers and Bun have, too: the standards, and the two packages of the calls. */
it("imports nothing that only Node.js has", () => {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
  );
  expect(files.length).toBeGreaterThan(8);
  const sources = files.map((file) => readFileSync(join(import.meta.dirname, file), "utf8"));
  const imported = sources.flatMap((source) =>
    [...source.matchAll(/\b(?:from|import\() ?"([^"]+)"/g)].map(([, name = ""]) => name),
  );
  const packages = new Set(imported.filter((name) => !name.startsWith("./")));
  expect([...packages].sort()).toEqual(["openapi-fetch", "openapi-typescript-helpers"]);
  for (const source of sources.filter((text) => !text.startsWith("// Generated"))) {
    expect(source).not.toMatch(/\b(process|Buffer|require|__dirname)\b[.(]/);
  }
});
