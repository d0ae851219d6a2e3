import { expect, test } from "vitest";
import { databaseImages } from "../images/databases.ts";
import { ledgerMajor } from "../images/postgres.ts";
import { memberImage } from "./ledger.ts";

const two = { ledger: { embedded: { instances: 2 } } };
const all = databaseImages("all");

test("a ledger with two instances gets an image of the major version of a single one", () => {
  expect(memberImage(two, all)).toMatchObject({ engine: "postgresql", version: ledgerMajor });
});

test("no image is built for a ledger with one", () => {
  expect(memberImage({}, all)).toBeUndefined();
  expect(memberImage({ ledger: { embedded: { instances: 1 } } }, all)).toBeUndefined();
  expect(memberImage({ ledger: { url: "postgres://a/b" } }, all)).toBeUndefined();
});

test("a bundle without that version is refused", () => {
  expect(() => memberImage(two, databaseImages("default"))).toThrow("PostgreSQL 15");
});
