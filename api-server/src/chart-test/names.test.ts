import { expect, it } from "vitest";
import { isLeftOver, projectName, runSuffix } from "./names.ts";

const began = new Date("2026-05-04T03:02:01Z");
const after = (minutes: number): Date => new Date(began.getTime() + minutes * 60_000);
const names = (["app", "job"] as const).map((kind) => projectName(kind, runSuffix(began, "0a1b2c")));

it("names of a run are legal, and all have what only this run has", () => {
  for (const name of names) {
    expect(name).toMatch(/^[a-z0-9](?:[a-z0-9-]{4,30})[a-z0-9]$/);
    expect(name).toContain(runSuffix(began, "0a1b2c"));
  }
  expect(runSuffix(began, "0a1b2d")).not.toBe(runSuffix(began, "0a1b2c"));
});

it("a project is left over an hour after its run began, and not before: another run may still use it", () => {
  expect(names.map((name) => isLeftOver(name, after(59)))).toEqual([false, false]);
  expect(names.map((name) => isLeftOver(name, after(61)))).toEqual([true, true]);
});

it("no project that the test did not create is left over", () => {
  for (const name of ["helm-test-app", "helm-test-application-1", `my-${names[0]}`, `${names[0]}-2`]) {
    expect(isLeftOver(name, after(10_000))).toBe(false);
  }
});
