import { expect, test } from "vitest";
import { forEachConcurrently, sideBySide } from "./concurrently.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("each is begun in order, so many at once", async () => {
  const begun: number[] = [];
  let [active, most] = [0, 0];
  await forEachConcurrently([1, 2, 3, 4, 5], 2, async (item) => {
    begun.push(item);
    active += 1;
    most = Math.max(most, active);
    await turn();
    active -= 1;
  });
  expect([begun, most, active]).toEqual([[1, 2, 3, 4, 5], 2, 0]);
});

test("none is begun after a failure, and what is under way is awaited", async () => {
  const begun: number[] = [];
  const ended: number[] = [];
  const done = forEachConcurrently([1, 2, 3, 4], 2, async (item) => {
    begun.push(item);
    if (item === 1) {
      throw new Error("no");
    }
    await turn();
    await turn();
    ended.push(item);
  });
  await expect(done).rejects.toThrow("no");
  expect([begun, ended]).toEqual([[1, 2], [2]]);
});

test("what runs beside a part that fails is awaited before the failure is thrown", async () => {
  let isDone = false;
  const failing = () => Promise.reject(new Error("no"));
  const other = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    isDone = true;
  };
  await expect(sideBySide(failing, other)).rejects.toThrow("no");
  expect(isDone).toBe(true);
  await expect(sideBySide(other, failing)).rejects.toThrow("no");
});
