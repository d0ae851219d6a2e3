import { expect, it } from "vitest";
import { mapConcurrently } from "./concurrent.ts";

it("works on so many concurrently, and keeps the order", async () => {
  let running = 0;
  let most = 0;
  const results = await mapConcurrently([3, 1, 2, 1, 1], 2, async (milliseconds) => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    running -= 1;
    return milliseconds * 10;
  });
  expect(results).toEqual([30, 10, 20, 10, 10]);
  expect(most).toBe(2);
});

it("rejects with what the work threw", async () => {
  const work = async (item: number) => {
    if (item === 2) {
      throw new Error("no");
    }
  };
  await expect(mapConcurrently([1, 2, 3], 2, work)).rejects.toThrow("no");
});
