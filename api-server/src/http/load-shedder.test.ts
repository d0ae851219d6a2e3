import { expect, it } from "vitest";
import { LoadShedder } from "./load-shedder.ts";

it("refuses when memory is short in two samples, and no more once there is some", () => {
  let use = { heap: 0.5, process: 0.5 };
  const shedder = new LoadShedder(() => use, 60_000);
  const after = (heap: number, process: number): boolean => {
    use = { heap, process };
    shedder.sample();
    return shedder.isOverloaded;
  };
  expect([after(0.91, 0), after(0.95, 0), after(0.5, 0), after(0.95, 0), after(0.95, 0)]).toEqual([
    false,
    false,
    false,
    false,
    true,
  ]);
  expect([after(0.1, 0.89), after(0.1, 0.91), after(0.1, 0.91), after(0.1, 0.1)]).toEqual([
    false,
    false,
    true,
    false,
  ]);
  shedder.close();
});

it("reads the memory of the process", () => {
  const shedder = new LoadShedder();
  shedder.sample();
  expect(shedder.isOverloaded).toBe(false);
  shedder.close();
});
