import { expect, test } from "vitest";
import { ownChart } from "./chart.ts";
import { knownValues, valuesSchema } from "./known-values.ts";

test("values that a release before them refuses are left out, and named", () => {
  const schema = {
    additionalProperties: false,
    properties: {
      api: {},
      networkPolicy: {
        additionalProperties: false,
        properties: { git: {}, labels: { additionalProperties: {} } },
      },
    },
  };
  const values = {
    api: { replicas: 2 },
    networkPolicy: { git: [443], labels: { any: "value" }, webhooks: [443] },
    webhooks: { ca: "(the authority)" },
  };
  expect(knownValues(schema, values)).toEqual({
    known: { api: { replicas: 2 }, networkPolicy: { git: [443], labels: { any: "value" } } },
    unknown: ["networkPolicy.webhooks", "webhooks"],
  });
});

test("the chart of these sources has what it names, and nothing else", async () => {
  const schema = await valuesSchema(ownChart);
  expect(knownValues(schema, { webhooks: { ca: "" }, webhook: {} })).toEqual({
    known: { webhooks: { ca: "" } },
    unknown: ["webhook"],
  });
});
