import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { foundation, migrations } from "./schema.ts";

/** All statements of a store, in the order in which they are run; without the indentation of the source. */
function statements(cluster: string | undefined): string {
  const place = { database: "slipway", cluster };
  const all = [...foundation(place), ...migrations.flatMap((migration) => migration.statements(place))];
  return all.map((statement) => `${statement.replace(/^ +/gm, "").replace(/ +$/gm, "")};\n`).join("\n");
}

test.each([
  ["single", undefined],
  ["replicated", "main"],
])("the tables of a %s store are those of testdata", (name, cluster) => {
  const file = fileURLToPath(new URL(`testdata/${name}.sql`, import.meta.url));
  const got = statements(cluster);
  if (process.env.UPDATE_GOLDEN === "1") {
    writeFileSync(file, got);
  }
  expect(existsSync(file), "run with UPDATE_GOLDEN=1 to write it").toBe(true);
  expect(got).toBe(readFileSync(file, "utf8"));
});

// Shows: docs/analytics.md#the-api: replicated tables differ from those of a single server only in their
test("on a cluster every statement is for all of its members, and every table replicated at a path of its own", () => {
  const replicated = statements("main").split(";\n");
  const made = replicated.filter((statement) => statement.trim() !== "");
  for (const statement of made) {
    expect(statement).toContain("ON CLUSTER `main`");
  }
  const tables = made.filter((statement) => statement.includes("ENGINE ="));
  const paths = tables.map(
    (statement) =>
      /ENGINE = Replicated\w*MergeTree\('(\/clickhouse\/tables\/\{shard\}\/[^']+)', '\{replica\}'(?:, version)?\)/.exec(
        statement,
      )?.[1],
  );
  expect(paths).not.toContain(undefined);
  expect(new Set(paths).size).toBe(tables.length);
  // But for that, a member's tables are those of a single server.
  const plain = statements("main")
    .replaceAll(" ON CLUSTER `main`", "")
    .replace(/Replicated(\w*MergeTree)\('[^']*', '[^']*', (\w+)\)/g, "$1($2)")
    .replace(/Replicated(\w*MergeTree)\('[^']*', '[^']*'\)/g, "$1")
    .replace(
      /replicated_deduplication_window = (\d+), replicated_deduplication_window_seconds = \d+/g,
      "non_replicated_deduplication_window = $1",
    );
  expect(plain).toBe(statements(undefined));
});
