import { projectTypes } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { parseDatabaseVersions } from "../databases/versions.ts";
import { carriesOut } from "./supported-types.ts";

const images = parseDatabaseVersions(`
postgresql:
  "17": { image: "registry.example/postgresql:17", uid: 100, gid: 102 }
  "18": { image: "registry.example/postgresql:18", uid: 101, gid: 101, features: { pgStatStatements: false } }
mariadb: {}
clickhouse:
  "26.8.6.5": { image: "registry.example/stand-in", uid: 101, gid: 101, features: { replication: false } }
`);

describe("what can be created", () => {
  it("is what works, of databases where there is an image", () => {
    const can = carriesOut(projectTypes, () => images);
    expect(projectTypes.filter((type) => can(type))).toEqual(["http", "postgresql", "clickhouse", "job"]);
    expect(["16", "17", "18"].filter((version) => can("postgresql", version))).toEqual(["17", "18"]);
    expect(can("mariadb", "11")).toBe(false);
  });

  it("is one instance alone of what cannot replicate", () => {
    const can = carriesOut(projectTypes, () => images);
    expect([1, 2, 3].map((instances) => can("clickhouse", "26.8.6.5", instances))).toEqual([
      true,
      false,
      false,
    ]);
    expect([1, 2, 3].map((instances) => can("postgresql", "17", instances))).toEqual([true, true, true]);
  });

  it("is nothing that does not work, image or not", () => {
    const can = carriesOut(["http", "job"], () => images);
    expect(projectTypes.filter((type) => can(type))).toEqual(["http", "job"]);
    expect(can("postgresql", "17")).toBe(false);
  });

  it("is no database without a list of images", () => {
    const none = carriesOut(projectTypes, () => parseDatabaseVersions(""));
    expect(projectTypes.filter((type) => none(type))).toEqual(["http", "job"]);
  });
});

it("a list of images that is none is told", () => {
  expect(() => parseDatabaseVersions("oracle: { }")).toThrow(/no valid list of database images/);
  expect(() => parseDatabaseVersions("postgresql: [17]")).toThrow(/no valid list of database images/);
});
