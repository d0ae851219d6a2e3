import { expect, test } from "vitest";
import { analyticsSettings } from "./config.ts";

test("no address means no analytics", () => {
  expect(analyticsSettings({})).toBeUndefined();
  expect(
    analyticsSettings({ SLIPWAY_ANALYTICS_URL: "", SLIPWAY_ANALYTICS_DATABASE: "other" }),
  ).toBeUndefined();
});

test("an address is enough", () => {
  expect(analyticsSettings({ SLIPWAY_ANALYTICS_URL: "http://clickhouse:8123/" })).toEqual({
    url: "http://clickhouse:8123",
    username: "default",
    passwordFile: undefined,
    database: "slipway",
    caFile: undefined,
    cluster: undefined,
  });
});

test.each([
  ["SLIPWAY_ANALYTICS_URL", "tcp://clickhouse:9000"],
  ["SLIPWAY_ANALYTICS_DATABASE", "a`; DROP DATABASE b"],
  ["SLIPWAY_ANALYTICS_CLUSTER", "it's"],
])("refuses a wrong %s", (name, value) => {
  expect(() => analyticsSettings({ SLIPWAY_ANALYTICS_URL: "http://clickhouse", [name]: value })).toThrow(
    name,
  );
});
