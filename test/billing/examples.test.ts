import { planCharges } from "@slipway/crds";
import { expect, it } from "vitest";
import { examples, historyOf, instant, prices } from "./page.ts";
import { cents, recompute } from "./recomputation.ts";

const all = examples.map((example) => [example.example, example] as const);
/** After each of them. */
const until = instant("2030-01-01T00:00:00Z");

// Shows: docs/billing.md#hours: Each begun hour of an instance is charged once
// Shows: docs/billing.md#hours: A plan change within an hour charges the dearer one once.
// Shows: docs/billing.md#hours: Paused instances cost nothing, storage goes on.
// Shows: docs/billing.md#storage: Each begun hour is charged for the most GB that were billed at any instant of it
// Shows: docs/billing.md#prices: A charge has the price that was in force at its first instant
// Shows: docs/billing.md#terms: A term begins when an instance exists that has none
it.each(all)("%s: the charges that the page has", (_, example) => {
  const found = planCharges(historyOf(example, "uid"), prices, { until });
  const written = example.charges.map((charge) => ({
    ...charge,
    from: instant(charge.from),
    ...(charge.to === undefined ? {} : { to: instant(charge.to) }),
  }));
  expect(found).toEqual(written.map((charge) => expect.objectContaining(charge)));
});

it.each(all)("%s: the same charges, computed from the page alone", (_, example) => {
  const history = historyOf(example, "uid");
  const found = planCharges(history, prices, { until });
  const again = recompute(history, prices, { knownUntil: until, hoursFrom: 0 });
  expect(new Map(found.map(({ key, amount }) => [key.slice("uid/".length), cents(amount)]))).toEqual(again);
});

it("the page has an example of every kind of charge, and of none", () => {
  const kinds = new Set(examples.flatMap(({ charges }) => charges.map(({ kind }) => kind)));
  expect(kinds).toEqual(new Set(["instance_hour", "storage_hour", "term", "credit"]));
  expect(examples.filter(({ charges }) => charges.length === 0)).toHaveLength(1);
  expect(new Set(examples.map(({ example }) => example)).size).toBe(examples.length);
});
