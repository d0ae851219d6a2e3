import { expect, it } from "vitest";
import { LoadOrder } from "./load-order.ts";

it("what was requested before what is shown is not shown after it", () => {
  const loads = new LoadOrder();
  const [poll, reload] = [loads.begin(), loads.begin()];
  expect([reload.show(), poll.show()]).toEqual([true, false]);
  const [earlier, later] = [loads.begin(), loads.begin()];
  expect([earlier.show(), later.show()]).toEqual([true, true]);
  // A load that was never answered holds back no other.
  loads.begin();
  expect([loads.begin().show(), loads.begin().show()]).toEqual([true, true]);
});

it("a failure of what was requested before what is shown says nothing of it, and one of the same load or a later one does", () => {
  const loads = new LoadOrder();
  const [poll, reload] = [loads.begin(), loads.begin()];
  expect(poll.isNewest()).toBe(true);
  reload.show();
  expect([poll.isNewest(), reload.isNewest(), loads.begin().isNewest()]).toEqual([false, true, true]);
});
