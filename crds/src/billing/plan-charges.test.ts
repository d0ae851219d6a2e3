import { expect, test } from "vitest";
import { planCharges } from "./plan-charges.ts";

test("a history of very many changes is charged", () => {
  const state = { plan: "basic", paymentMode: "hourly", renews: true, paused: false, billedGb: 0 } as const;
  const changes = Array.from({ length: 200_000 }, (_, at) => ({ ...state, at, instances: 1 + (at % 2) }));
  const plans = { basic: { hourly: "3", monthly: "2160", yearly: "25920", refund: "none" } } as const;
  const charges = planCharges({ projectUid: "u1", changes }, [{ from: 0, gbHour: "0", plans }], {
    until: 200_000,
  });
  expect(charges.map(({ key }) => key)).toEqual(["u1/instance_hour/0/0", "u1/instance_hour/0/1"]);
});
