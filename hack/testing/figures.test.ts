import { expect, test } from "vitest";
import { valuesLine } from "./figures.ts";

test("figures read as a sentence has them, with two places at most", () => {
  expect(valuesLine({ "rows acknowledged": 12345, "x bare Fastify": 0.9149, lost: 0 })).toBe(
    "12,345 rows acknowledged, 0.91 x bare Fastify, 0 lost",
  );
});
