import { expect, test } from "vitest";
import { fileTimes, longest } from "./longest.ts";

test("the longest files come first, by names within the repository", () => {
  const report = {
    testResults: [
      { name: "/repository/a.test.ts", startTime: 1_000, endTime: 2_400 },
      { name: "/repository/room/b.test.ts", startTime: 2_000, endTime: 95_000 },
      { name: "/repository/c.test.ts", startTime: 3_000, endTime: 3_100 },
    ],
  };
  expect(longest(fileTimes(JSON.stringify(report), "/repository"), 2)).toEqual([
    "   93 s  room/b.test.ts",
    "    1 s  a.test.ts",
  ]);
});
