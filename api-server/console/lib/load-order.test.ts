import { expect, it } from "vitest";
import { LoadOrder } from "./load-order.ts";

it("what was requested before what is shown is not shown after it", () => {
  const loads = new LoadOrder();
  const [poll, reload] = [loads.begin(), loads.begin()];
  expect([reload(), poll()]).toEqual([true, false]);
  const [earlier, later] = [loads.begin(), loads.begin()];
  expect([earlier(), later()]).toEqual([true, true]);
  // A load that was never answered holds back no other.
  loads.begin();
  expect([loads.begin()(), loads.begin()()]).toEqual([true, true]);
});
