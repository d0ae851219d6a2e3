import { expect, test } from "vitest";
import { collectorSettings } from "./settings.ts";

const env = { SLIPWAY_ANALYTICS_URL: "http://store:8123/" };

test("defaults, and an empty variable counts as absent", () => {
  const settings = collectorSettings({
    ...env,
    SLIPWAY_COLLECTOR_STATE: "",
    SLIPWAY_COLLECTOR_OTLP_PORT: "",
  });
  expect(settings).toMatchObject({
    store: { url: "http://store:8123", database: "slipway" },
    podLogs: "/var/log/pods",
    stateFolder: "/var/lib/slipway/collector",
    maxBufferBytes: 536_870_912,
    keepFreeBytes: 1_073_741_824,
    source: { namespace: "slipway-ingress", container: "traefik" },
    otlpPort: undefined,
    otlpTokenFile: undefined,
    metricsPort: 9090,
  });
  expect(settings.isTrusted("10.0.0.1")).toBe(false);
});

test("logs of projects are kept where that is said, of the node that is named", () => {
  const logs = { ...env, SLIPWAY_COLLECTOR_LOGS: "true" };
  expect(collectorSettings(env)).toMatchObject({ logs: undefined, logBufferBytes: 268_435_456 });
  expect(() => collectorSettings(logs)).toThrow("SLIPWAY_NODE_NAME");
  expect(collectorSettings({ ...logs, SLIPWAY_NODE_NAME: "node-1" }).logs).toEqual({
    days: 8,
    bounds: {
      project: { linesPerSecond: 500, bytesPerSecond: 131_072 },
      organization: { linesPerSecond: 2_000, bytesPerSecond: 524_288 },
      organizationBytesPerDay: 536_870_912,
      burstSeconds: 60,
    },
  });
});

test("instances are sampled where that is said, by the kubelet of the node that is named", () => {
  const metrics = { ...env, SLIPWAY_COLLECTOR_METRICS: "true" };
  const named = { ...metrics, SLIPWAY_NODE_NAME: "node-1" };
  const whole = { ...named, SLIPWAY_NODE_ADDRESS: "10.0.0.7" };
  expect(collectorSettings(env)).toMatchObject({ metrics: undefined, metricsBufferBytes: 67_108_864 });
  expect(() => collectorSettings(metrics)).toThrow("SLIPWAY_NODE_NAME");
  expect(() => collectorSettings(named)).toThrow("SLIPWAY_NODE_ADDRESS");
  expect(() => collectorSettings({ ...whole, SLIPWAY_NODE_ADDRESS: "node" })).toThrow("SLIPWAY_NODE_ADDRESS");
  expect(collectorSettings(whole)).toMatchObject({
    metrics: { intervalMs: 30_000, kubelet: { host: "10.0.0.7", port: 10_250 }, trust: { verify: true } },
    node: "node-1",
  });
  for (const seconds of ["14", "61", "x"]) {
    const wrong = { ...whole, SLIPWAY_COLLECTOR_METRICS_SECONDS: seconds };
    expect(() => collectorSettings(wrong)).toThrow("SLIPWAY_COLLECTOR_METRICS_SECONDS");
  }
});

test("proxies are addresses and CIDRs", () => {
  const { isTrusted } = collectorSettings({ ...env, SLIPWAY_TRUSTED_PROXIES: "10.0.0.0/8, 2001:db8::1" });
  expect(["10.9.8.7", "2001:db8::1", "11.0.0.1"].map(isTrusted)).toEqual([true, true, false]);
});

test("everything that is wrong is named, without its value", () => {
  const wrong = { SLIPWAY_TRUSTED_PROXIES: "secret-1", SLIPWAY_METRICS_PORT: "secret-2" };
  expect(() => collectorSettings({ ...env, ...wrong })).toThrow(
    /SLIPWAY_TRUSTED_PROXIES[\s\S]*SLIPWAY_METRICS_PORT/,
  );
  expect(() => collectorSettings({ ...env, ...wrong })).not.toThrow(/secret-/);
  expect(() => collectorSettings({})).toThrow("SLIPWAY_ANALYTICS_URL: is not set");
});
