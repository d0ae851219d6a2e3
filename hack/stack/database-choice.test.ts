import { expect, test } from "vitest";
import { databaseImages } from "../images/databases.ts";
import { chosenImages, imageKey, parseDatabaseChoice } from "./database-choice.ts";

test("a stack gets what is requested and keeps what it offers", () => {
  const keys = (choice: string, offered: string[] = []) =>
    chosenImages(parseDatabaseChoice(choice), databaseImages("all"), offered).map(imageKey);
  expect(keys("none")).toEqual([]);
  expect(keys("none", ["postgresql:15"])).toEqual(["postgresql:15"]);
  expect(keys("mariadb:10", ["mariadb:11", "oracle:23"])).toEqual(["mariadb:10", "mariadb:11"]);
  expect(keys("all")).toEqual(databaseImages("all").map(imageKey));
  expect(keys("default")).toContain("postgresql:17");
  expect(keys("default")).not.toContain("postgresql:15");
  expect(keys("default", ["postgresql:15"])).toContain("postgresql:15");
});

test.each([
  ["postgresql:9", "--databases has no postgresql:9; it is default, all, none, or a list of postgresql:15, "],
  ["postgresql:16,", "--databases has no empty entry"],
])("%s is refused, with what there is", (choice, message) => {
  expect(() => chosenImages(parseDatabaseChoice(choice), databaseImages("all"))).toThrow(message);
});

test("what a bundle has is what can be chosen", () => {
  const images = databaseImages("all").map((image) => ({ ...image, version: `${image.version}.1` }));
  expect(chosenImages("default", images).map(imageKey)).toContain("postgresql:17.1");
  expect(() => chosenImages(["postgresql:17"], images)).toThrow("postgresql:17.1");
});
