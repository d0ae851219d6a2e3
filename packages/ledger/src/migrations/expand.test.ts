import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/**
 * A release's processes run on the schema of the one after it, during an upgrade and after going back. So a migration only adds: what it would
 * remove or narrow is left for a later release, once no supported one needs it. That one is listed here, with the release, and so is one that only
 * seems to, with the reason.
 */
const CONTRACTIONS: Readonly<Record<string, string>> = {
  "0023-late-changes.ts":
    "constraints of plan_charges are replaced by ones that accept all rows that they did, and more",
  "0028-resource-charges.ts":
    "constraints of plan_charges and invoice_lines are replaced by ones that accept all rows that they did, and more",
};

/** The last migration of 0.1.0: there was no release before it that could run beside. */
const LAST_OF_FIRST_RELEASE = "0015";

/** What statements take away from processes that were written before them. */
function removals(source: string): string[] {
  const patterns = [
    /\bdrop\s+(table|column|view|function|trigger|schema|type|constraint)\b/gi,
    /\brename\b/gi,
    /\bset\s+not\s+null\b/gi,
    /\balter\s+column\s+\S+\s+(set\s+data\s+)?type\b/gi,
    /\badd\s+column\s+(?!.*\bdefault\b)[^,;`]*\bnot\s+null\b/gi,
    /\.(dropTable|dropColumn|renameTo|renameColumn|setNotNull|setDataType)\(/g,
  ];
  return patterns.flatMap((pattern) => source.match(pattern) ?? []);
}

test.each([
  ["alter table charges drop column note", "drop column"],
  ["alter table charges drop constraint paid, add constraint paid check (amount > 0)", "drop constraint"],
  ["alter table charges rename to bills", "rename"],
  ["alter table charges alter column note set not null", "set not null"],
  ["alter table charges alter column amount type bigint", "alter column amount type"],
  ["alter table charges add column note text not null", "add column note text not null"],
  ['await db.schema.alterTable("charges").dropColumn("note").execute()', ".dropColumn("],
])("%s takes something away", (source, found) => {
  expect(removals(source)).toContain(found);
});

test.each([
  "alter table charges add column note text",
  "alter table charges add column note text not null default ''",
  "create table refunds (id text primary key, amount numeric not null)",
  "create index charges_by_note on charges (note)",
])("%s only adds", (source) => {
  expect(removals(source)).toEqual([]);
});

test("no migration since 0.1.0 takes away what a release beside it needs", () => {
  const later = readdirSync(import.meta.dirname).filter(
    (file) => /^\d{4}-.*\.ts$/.test(file) && file.slice(0, 4) > LAST_OF_FIRST_RELEASE,
  );
  const found = later.flatMap((file) => {
    const source = readFileSync(join(import.meta.dirname, file), "utf8");
    return file in CONTRACTIONS ? [] : removals(source).map((removal) => `${file}: ${removal}`);
  });
  expect(found).toEqual([]);
});
