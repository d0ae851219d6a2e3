import { expect, test } from "vitest";
import { busy, parseProcessorTimes, processorTimes } from "./processors.ts";

const stat = (line: string) => parseProcessorTimes(`${line}\ncpu0 1 1 1 1 1 1 1 1 0 0\n`);

test("waiting for a disk is not busy, and stolen time is", () => {
  const from = stat("cpu  100 0 50 1000 10 0 5 1 7 0");
  const to = stat("cpu  140 2 60 1030 20 1 7 6 9 0");
  expect(busy(from, to)).toBe("processors 60 % busy, 5 % stolen");
});

test("a stage that ends at once used nothing that could be measured", () => {
  const now = stat("cpu  100 0 50 1000 10 0 5 1 7 0");
  expect(busy(now, now)).toBe("processors not measured");
});

test("the machine's own times are read", () => {
  expect(processorTimes().total).toBeGreaterThan(processorTimes().idle);
});
