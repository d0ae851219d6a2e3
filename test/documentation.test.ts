import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { routes } from "../api-server/src/routes.ts";
import { oneSpaced } from "../hack/docs/pages.ts";
import { readAnnotations, readSections, rowsWith } from "../hack/docs/traceability.ts";
import { root } from "../hack/lib/paths.ts";

/** Every row of every table of these pages is a promise: a test shows it, and they name all endpoints and failures. */
const PAGES = [
  "docs/applications.md",
  "docs/jobs.md",
  "docs/databases-api.md",
  "docs/backups.md",
  "docs/git.md",
  "docs/builds.md",
  "docs/console.md",
  "docs/analytics.md",
  "docs/logs.md",
  "docs/metrics.md",
  "docs/alerts.md",
  "docs/log-drains.md",
  "docs/sleep.md",
  "docs/operations/tracing.md",
  "docs/undelete.md",
  "docs/references.md",
  "docs/exec.md",
  "docs/variable-groups.md",
  "docs/webhooks.md",
  "docs/email.md",
  "docs/usage.md",
  "docs/invoices.md",
  "docs/budgets.md",
  "docs/cli.md",
];

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const sections = PAGES.flatMap(readSections);
const rows = sections.flatMap((section) => section.rows);
const annotations = readAnnotations();
const allSections = new Map(
  [...new Set(annotations.map(({ page }) => page))].map((page) => [page, readSections(page)]),
);

const markdownIn = (room: string): string[] =>
  readdirSync(join(root, room), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md") && !file.includes("node_modules"))
    .map((file) => join(room, file));

/** Codes between quotes in the sources of the API: those that it answers, and those of others that it knows. */
function quotedCodes(): string[] {
  const sources = readdirSync(join(root, "api-server/src"), { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
  );
  const text = sources.map((file) => read(join("api-server/src", file))).join("\n");
  // Node's, Fastify's and ws's own, an environment variable's end, and the audit log's words about the admin command.
  const others = /^(FST_ERR|WS_ERR|HPE|ERR|LOG|ADMIN)_/;
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
  "organization country",
  "invoice list",
  "invoice show",
  "invoice pay",
  "invoice credit",
];

/** Folders of the repository that pages name files of. */
const ROOMS = [
  "api-server",
  "builder",
  "charts",
  "cli",
  "collector",
  "crds",
  "docs",
  "hack",
  "operator",
  "packages",
  "recovery",
  "test",
];

describe("pages", () => {
  it("name no file or folder that does not exist", () => {
    const pages = ["README.md", "CONTRIBUTING.md", ...ROOMS.flatMap(markdownIn)];
    const named = pages.flatMap((page) =>
      [...read(page).matchAll(/`((?:[\w@.-]+\/)+[\w@.-]*)`/g)].map(([, path = ""]) => ({ page, path })),
    );
    const inRooms = named.filter(({ path }) => ROOMS.includes(path.split("/")[0] ?? ""));
    expect(inRooms.length).toBeGreaterThan(200);
    expect(inRooms.filter(({ path }) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("have no rows apart from their table", () => {
    const pages = ["README.md", "CONTRIBUTING.md", ...ROOMS.flatMap(markdownIn)];
    const apart = pages.flatMap((page) =>
      // What is between fences is no table.
      read(page)
        .replace(/^ *```.*?^ *```$/gms, "")
        .matchAll(/(?<!^\|.*\n)^\|.*\n(?!\|[ |:-]+$)/gm)
        .map(([row]) => `${page}: ${row.trim()}`)
        .toArray(),
    );
    expect(apart).toEqual([]);
  });
});

describe("annotations above tests", () => {
  it("quote a section of a page, and one row of it at the most", () => {
    const wrong = annotations.filter(({ page, section: anchor, promise }) => {
      const section = allSections.get(page)?.find((each) => each.anchor === anchor);
      return !section?.text.includes(oneSpaced(promise)) || rowsWith(section, promise).length > 1;
    });
    expect(wrong.map(({ file, line, promise }) => `${file}:${line}: ${promise}`)).toEqual([]);
  });
});

describe("the tables of what is promised", () => {
  it("have a test for every row", () => {
    expect(rows.length).toBeGreaterThan(150);
    const missing = sections.flatMap((section) => {
      const shown = annotations
        .filter(({ page, section: anchor }) => page === section.page && anchor === section.anchor)
        .flatMap(({ promise }) => rowsWith(section, promise));
      return section.rows.filter((row) => !shown.includes(row));
    });
    expect(missing).toEqual([]);
  });

  it("have no row twice", () => {
    const twice = sections.flatMap((section) =>
      section.rows.filter((row, at) => section.rows.indexOf(row) !== at),
    );
    expect(twice).toEqual([]);
  });

  it("name every endpoint, and none that does not exist", () => {
    const operations = routes.map(({ method, path }) => `${method} ${path}`);
    const named = rows.flatMap((row) =>
      [...row.matchAll(/`((?:GET|POST|PATCH|PUT|DELETE) \/[^`]*)`/g)].map(([, operation = ""]) => operation),
    );
    expect(operations.filter((operation) => !named.includes(operation))).toEqual([]);
    expect(named.filter((operation) => !operations.includes(operation))).toEqual([]);
  });

  it("name every failure of the API and of the shipped catalog", () => {
    const codes = new Set([...quotedCodes(), ...catalogCodes()]);
    expect(codes.size).toBeGreaterThan(50);
    expect([...codes].filter((code) => !rows.some((row) => row.includes(`\`${code}\``)))).toEqual([]);
  });

  it("name every admin command", () => {
    const missing = ADMIN.filter((command) => !rows.some((row) => row.includes(`\`admin ${command}`)));
    expect(missing).toEqual([]);
  });
});
