import { patchAutoscalingBody } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { scalingBody, scalingForm } from "../../console/lib/scaling.ts";

describe("the form of a project's instances", () => {
  const autoscaling = { enabled: true, max_instances: 5, requests_per_second_target: 50 };
  const made = scalingForm({ instances: 2, autoscaling });

  it("changes what differs from the form as it was made", () => {
    expect(scalingBody(made, { ...made })).toBeUndefined();
    const least = scalingBody(made, { ...made, least: "3" });
    expect(patchAutoscalingBody.parse(least)).toEqual({ instances: 3 });
    const targets = scalingBody(made, { ...made, cpu: "70", requests: "" });
    expect(patchAutoscalingBody.parse(targets)).toEqual({
      autoscaling: { enabled: true, max_instances: 5, cpu_target_percentage: 70 },
    });
  });

  it("adds an autoscaling, and removes it", () => {
    const none = scalingForm({ instances: 1 });
    const added = scalingBody(none, { ...none, isScaled: true, most: "4", memory: "80" });
    expect(patchAutoscalingBody.parse(added)).toEqual({
      autoscaling: { enabled: true, max_instances: 4, memory_target_percentage: 80 },
    });
    const removed = scalingBody(made, { ...made, isScaled: false });
    expect(patchAutoscalingBody.parse(removed)).toEqual({ autoscaling: null });
  });

  it("leaves one that is off as it is, until it is on", () => {
    const off = scalingForm({ instances: 1, autoscaling: { ...autoscaling, enabled: false } });
    expect(scalingBody(off, { ...off })).toBeUndefined();
    expect(scalingBody(off, { ...off, isScaled: true })).toEqual({ autoscaling });
  });
});
