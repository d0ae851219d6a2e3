import type { Project } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { chartCatalog, exampleDatabase } from "../../../test/kit/databases/examples.ts";
import { acceptDatabase } from "./accept.ts";
import type { DatabaseDriver } from "./driver.ts";
import { parseDatabaseImages } from "./settings.ts";

const images = parseDatabaseImages(`
postgresql:
  "17": { image: registry.example/postgresql:17, uid: 100, gid: 102 }
`);
const driver: DatabaseDriver = {
  name: "postgresql",
  port: 5432,
  desired: () => [],
  isCaughtUp: async () => true,
  reconcile: async () => ({}),
};
const accept = (spec: Partial<Project["spec"]> = {}, of = { catalog: chartCatalog, images, driver }) =>
  acceptDatabase(exampleDatabase(spec), of);

describe("a database is accepted", () => {
  test("on a plan that offers it", () => {
    expect(accept().plan).toBe("db-premium");
    expect(accept({ instances: 3, plan: "db-business" }).plan).toBe("db-business");
  });

  test.each<[string, Partial<Project["spec"]>, string]>([
    ["a plan that nobody knows", { plan: "db-golden" }, "The plan db-golden is not in the catalog."],
    ["a plan of another type", { plan: "basic" }, "The plan basic is not for databases."],
    ["a plan of another engine", { plan: "analytics-basic" }, "The plan analytics-basic has no postgresql."],
    [
      "more instances than the plan has",
      { plan: "db-free", instances: 2 },
      "The plan db-free has exactly 1 instances.",
    ],
    [
      "more storage than the plan has",
      { storage: { persistent: true, capacity: 500 } },
      "The plan db-premium has 1 to 250 GB of storage.",
    ],
    ["a version that the plan does not have", { version: "14" }, "The plan db-premium has no version 14."],
    ["a version without an image", { version: "16" }, "This platform has no image of postgresql 16."],
    [
      "an engine without images",
      { type: "mariadb", version: "11" },
      "Projects of type mariadb are not supported on this platform.",
    ],
  ])("but not with %s", (_, spec, message) => {
    expect(() => accept(spec)).toThrow(message);
  });

  test("but not when databases are switched off, nor when the engine rejects it", () => {
    const off = { catalog: { ...chartCatalog, databasesEnabled: false }, images, driver };
    expect(() => accept({}, off)).toThrow("Databases are disabled on this platform.");
    const refuse = () => ({ reason: "FeatureNotSupported", message: "Not on Sundays." }) as const;
    expect(() => accept({}, { catalog: chartCatalog, images, driver: { ...driver, refuse } })).toThrow(
      "Not on Sundays.",
    );
  });
});

test("a list of images names what is wrong with it", () => {
  expect(() => parseDatabaseImages("postgresql: { '17': { image: x, uid: 0, gid: 1 } }")).toThrow("uid");
  expect(() => parseDatabaseImages("oracle: {}")).toThrow("oracle");
  expect(parseDatabaseImages("")).toEqual({});
});
