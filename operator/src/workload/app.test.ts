import { expect, test } from "vitest";
import { placement, placementFields } from "./app.ts";

test("without settings a pod is as it was", () => {
  expect(placementFields()).toEqual({});
  expect(placementFields(placement.parse({}))).toEqual({});
  expect(
    placementFields(placement.parse({ runtimeClassName: "", tolerations: [], hostUsers: true })),
  ).toEqual({});
});

test("each setting is the field of that name", () => {
  const all = {
    runtimeClassName: "gvisor",
    nodeSelector: { "slipway.dev/pool": "tenants" },
    tolerations: [{ key: "tenants", operator: "Exists" as const, effect: "NoSchedule" as const }],
    hostUsers: false,
  };
  expect(placementFields(placement.parse(all))).toEqual(all);
});

test("what Kubernetes does not know is refused", () => {
  expect(() => placement.parse({ runtimeClass: "gvisor" })).toThrow(/runtimeClass/);
  expect(() => placement.parse({ tolerations: [{ effect: "Never" }] })).toThrow(/effect/);
});
