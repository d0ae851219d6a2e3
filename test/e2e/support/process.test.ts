import { expect, test } from "vitest";
import { type Found, workerOf } from "./process.ts";

const found = (id: number, innerId: number): Found => ({
  id,
  innerId,
  command: "patroni patroni.yml ",
  environment: [],
  pidNamespace: "pid:[1]",
});

test.for<[string, Found[], number | undefined]>([
  ["the only one", [found(800, 1)], 800],
  ["not the init", [found(800, 1), found(810, 10)], 810],
  [
    "not the init, though the ids of the machine have started over between them",
    [found(32_760, 1), found(12, 10)],
    12,
  ],
  ["not a child that is about to start a program", [found(800, 1), found(810, 10), found(900, 40)], 810],
  ["none of none", [], undefined],
])("the process that does the work: %s", ([, all, id]) => {
  expect(workerOf(all)?.id).toBe(id);
});
