import { projectTypes } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { parseDatabaseVersions, supports } from "./supported-types.ts";

const images = parseDatabaseVersions(`
postgresql:
  "17": { image: "registry.example/postgresql:17", uid: 100, gid: 102 }
  "18": { image: "registry.example/postgresql:18", uid: 101, gid: 101, features: { pgStatStatements: false } }
mariadb: {}
clickhouse:
  "26.8.6.5": { image: "registry.example/stand-in", uid: 101, gid: 101, features: { replication: false } }
`);

describe("supports", () => {
  // Shows: docs/databases-api.md#rules-of-a-creation: 503 `PROJECT_TYPE_UNAVAILABLE`: the type is not
  it("supports the listed types, and databases that have an image", () => {
    const can = supports(projectTypes, () => images);
    expect(projectTypes.filter((type) => can(type))).toEqual([
      "http",
      "postgresql",
      "clickhouse",
      "job",
      "worker",
    ]);
    expect(["16", "17", "18"].filter((version) => can("postgresql", version))).toEqual(["17", "18"]);
    expect(can("mariadb", "11")).toBe(false);
  });

  // Shows: docs/databases-api.md#rules-of-a-creation: 503 `PROJECT_TYPE_UNAVAILABLE`: the type is not
  it("supports a single instance of what cannot replicate", () => {
    const can = supports(projectTypes, () => images);
    expect([1, 2, 3].map((instances) => can("clickhouse", "26.8.6.5", instances))).toEqual([
      true,
      false,
      false,
    ]);
    expect([1, 2, 3].map((instances) => can("postgresql", "17", instances))).toEqual([true, true, true]);
  });

  it("supports no type that is not listed, with or without an image", () => {
    const can = supports(["http", "job"], () => images);
    expect(projectTypes.filter((type) => can(type))).toEqual(["http", "job"]);
    expect(can("postgresql", "17")).toBe(false);
  });

  it("supports no database without a list of images", () => {
    const none = supports(projectTypes, () => parseDatabaseVersions(""));
    expect(projectTypes.filter((type) => none(type))).toEqual(["http", "job", "worker"]);
  });
});

it("rejects an invalid list of images", () => {
  expect(() => parseDatabaseVersions("oracle: { }")).toThrow(/no valid list of database images/);
  expect(() => parseDatabaseVersions("postgresql: [17]")).toThrow(/no valid list of database images/);
});
