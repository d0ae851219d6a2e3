import { expect, test } from "vitest";
import { databaseImages } from "../images/databases.ts";
import { chosenImages, imageKey, parseDatabaseChoice } from "./database-choice.ts";

test("a stack gets what is requested and keeps what it offers", () => {
  const keys = (choice: string, offered: string[] = []) =>
    chosenImages(parseDatabaseChoice(choice), offered).map(imageKey);
  expect(keys("none")).toEqual([]);
  expect(keys("none", ["postgresql:15"])).toEqual(["postgresql:15"]);
  expect(keys("mariadb:10", ["mariadb:11", "oracle:23"])).toEqual(["mariadb:10", "mariadb:11"]);
  expect(keys("all")).toEqual(databaseImages("all").map(imageKey));
  expect(keys("default")).toContain("postgresql:17");
  expect(keys("default")).not.toContain("postgresql:15");
  expect(keys("default", ["postgresql:15"])).toContain("postgresql:15");
});
