import { expect, test } from "vitest";
import { measureStack } from "./stack.ts";

const isLong = process.env.SLIPWAY_TEST_LONG === "1";

test("a victim's requests, runs and rows are not harmed by what attackers do, one after another and all at once", {
  timeout: isLong ? 3_600_000 : 360_000,
}, async () => {
  // How slow it was is a figure of the report: other work of the machine is in it.
  expect((await measureStack()).faults).toEqual([]);
});
