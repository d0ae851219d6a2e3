import { expect, test } from "vitest";
import { archiveName, createdAtOf, expiredNames, newestName } from "./name.ts";

const id = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed";
const day = (number: number) => archiveName(`2026-11-${String(number).padStart(2, "0")}T04:00:00.123Z`, id);
const now = new Date("2026-11-29T04:00:01Z");

test("a name says when its archive was begun", () => {
  expect(day(29)).toBe("platform-20261129T040000Z-1b9d6bcd.age");
  expect(createdAtOf(day(29))).toEqual(new Date("2026-11-29T04:00:00Z"));
});

test.for([
  "platform-20261129T040000Z.age",
  "platform-20261129T040000Z-1b9d6bcd.age.1.partial",
  "x/platform-20261129T040000Z-1b9d6bcd.age",
  "platform-20261329T040000Z-1b9d6bcd.age",
  "notes.txt",
])("%s is not one of an archive: it is never the newest, nor deleted", (name) => {
  expect(createdAtOf(name)).toBeUndefined();
  expect(newestName([name, day(1)])).toBe(day(1));
  expect(expiredNames([name], { days: 0, keepAtLeast: 0 }, now)).toEqual([]);
});

test("the newest is so by its name, in whatever order they are listed", () => {
  expect(newestName([day(2), day(27), day(3)])).toBe(day(27));
  expect(newestName([])).toBeUndefined();
});

test("those that are older than the days given expire, but for the newest ones", () => {
  const names = [day(29), day(1), day(27), day(15), day(28)];
  expect(expiredNames(names, { days: 7, keepAtLeast: 1 }, now)).toEqual([day(1), day(15)]);
  expect(expiredNames(names, { days: 7, keepAtLeast: 4 }, now)).toEqual([day(1)]);
  expect(expiredNames(names, { days: 7, keepAtLeast: 5 }, now)).toEqual([]);
  // When no backup succeeds any more, the last ones stay.
  const later = new Date("2027-11-29T04:00:01Z");
  expect(expiredNames(names, { days: 7, keepAtLeast: 2 }, later)).toEqual([day(1), day(15), day(27)]);
});
