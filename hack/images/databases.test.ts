import { versionsOfType } from "@slipway/crds";
import { expect, test } from "vitest";
import { databaseImages, databaseImageValues } from "./databases.ts";

test("a stack has an image of every version of every engine, one of each, or none", () => {
  const names = (images: { engine: string; version: string }[]) =>
    images.map(({ engine, version }) => `${engine} ${version}`).sort();
  const all = Object.entries(versionsOfType).flatMap(([engine, versions]) =>
    versions.map((version) => ({ engine, version })),
  );
  expect(names(databaseImages("all"))).toEqual(names(all));
  expect(names(databaseImages("default"))).toEqual([
    ...["clickhouse 26.8.6.5", "mariadb 11", "postgresql 17", "valkey 9.1.1"],
  ]);
  expect(databaseImages("none")).toEqual([]);
});

test("images have references of their own before they are built", async () => {
  const references = await Promise.all(databaseImages("all").map((image) => image.reference()));
  expect(new Set(references).size).toBe(references.length);
  for (const reference of references) {
    expect(reference).toMatch(/^slipway\.local\/slipway\/[a-z]+:[\d.]+-[0-9a-f]{16}$/);
  }
});

test("the chart learns what containers run as, and what runs where it is not the engine", () => {
  const delivered = databaseImages("default").map((source) => ({ source, reference: `r/${source.engine}` }));
  expect(databaseImageValues(delivered)).toEqual({
    postgresql: { "17": { image: "r/postgresql", uid: 999, gid: 999 } },
    mariadb: { "11": { image: "r/mariadb", uid: 999, gid: 999 } },
    clickhouse: {
      "26.8.6.5": {
        image: "r/clickhouse",
        uid: 101,
        gid: 101,
        engine: "chdb",
        features: { replication: false },
      },
    },
    valkey: { "9.1.1": { image: "r/valkey", uid: 999, gid: 999 } },
  });
});
