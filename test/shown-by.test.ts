import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { routes } from "../api-server/src/routes.ts";
import { root } from "../hack/lib/paths.ts";

/** The tables of these pages are held to the code: no endpoint, no failure and no test that they do not know. */
const PAGES = [
  "docs/applications.md",
  "docs/jobs.md",
  "docs/databases-api.md",
  "docs/backups.md",
  "docs/git.md",
  "docs/builds.md",
  "docs/console.md",
  "docs/analytics.md",
  "docs/operations/tracing.md",
];

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const lines = PAGES.flatMap((page) => read(page).split("\n"));
const isSeparator = (line: string | undefined): boolean => line?.startsWith("|-") ?? false;
/** Every row of every table, without the tables' heads. */
const rows = lines.filter(
  (line, at) => line.startsWith("|") && !isSeparator(line) && !isSeparator(lines[at + 1]),
);

interface Reference {
  /** As it stands in the page. */
  text: string;
  file: string;
  title: string;
}

/** Whatever stands between backticks and looks like `file › part of a test's title`. */
const referencesOf = (row: string): Reference[] =>
  [...row.matchAll(/`([^`]*›[^`]*)`/g)].map(([, text = ""]) => {
    const [file = "", title = ""] = text.split(" › ");
    return { text, file, title };
  });

/** A title is part of a string in the test's file, and not of a comment. */
function stands({ file, title }: Reference): boolean {
  if (!/^[\w./-]+\.test\.ts$/.test(file) || title.length < 8 || !existsSync(join(root, file))) {
    return false;
  }
  return read(file)
    .split("\n")
    .some((line) => {
      const at = line.indexOf(title);
      return at > 0 && /["'`]/.test(line.slice(0, at)) && !/^\s*(\/\/|\/?\*)/.test(line);
    });
}

/** Codes between quotes in the sources of the API: those that it answers, and what it knows of others'. */
function quotedCodes(): string[] {
  const sources = readdirSync(join(root, "api-server/src"), { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
  );
  const text = sources.map((file) => read(join("api-server/src", file))).join("\n");
  // Node's and Fastify's own, an environment variable's end, and the audit log's words about the admin command.
  const others = /^(FST_ERR|HPE|ERR|LOG|ADMIN)_/;
  return [...text.matchAll(/"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"/g)]
    .map(([, code = ""]) => code)
    .filter((code) => !others.test(code));
}

/** Those that the shipped catalog gives to the limits of its plans. */
const catalogCodes = (): string[] =>
  [...read("charts/slipway/files/catalog.yaml").matchAll(/\b(?:code|exceededCode): ([A-Z0-9_]+)/g)].map(
    ([, code = ""]) => code,
  );

/** Every command of the admin command line, as the page writes it: `admin organization block`. */
const ADMIN = [
  "organization create",
  "organization block",
  "organization unblock",
  "api-key create",
  "api-key revoke",
  "user-token create",
  "member set",
  "member remove",
  "capacity set",
  "domain verify",
  "github connect",
];

describe("the tables of what is promised", () => {
  it("shows every row by a test", () => {
    expect(rows.length).toBeGreaterThan(150);
    expect(rows.filter((row) => referencesOf(row).length === 0)).toEqual([]);
  });

  it("names tests that exist", () => {
    const references = rows.flatMap(referencesOf);
    expect(references.filter((reference) => !stands(reference)).map(({ text }) => text)).toEqual([]);
  });

  it("has no row twice", () => {
    expect(rows.filter((row, at) => rows.indexOf(row) !== at)).toEqual([]);
  });

  it("names every endpoint, and none that is not there", () => {
    const operations = routes.map(({ method, path }) => `${method} ${path}`);
    const named = rows.flatMap((row) =>
      [...row.matchAll(/`((?:GET|POST|PATCH|PUT|DELETE) \/[^`]*)`/g)].map(([, operation = ""]) => operation),
    );
    expect(operations.filter((operation) => !named.includes(operation))).toEqual([]);
    expect(named.filter((operation) => !operations.includes(operation))).toEqual([]);
  });

  it("names every failure of the API and of the shipped catalog", () => {
    const codes = new Set([...quotedCodes(), ...catalogCodes()]);
    expect(codes.size).toBeGreaterThan(50);
    expect([...codes].filter((code) => !rows.some((row) => row.includes(`\`${code}\``)))).toEqual([]);
  });

  it("names every admin command", () => {
    const missing = ADMIN.filter((command) => !rows.some((row) => row.includes(`\`admin ${command}`)));
    expect(missing).toEqual([]);
  });
});
