import { ConfigError } from "@slipway/process";
import { describe, expect, it } from "vitest";
import { loadConfig } from "./config.ts";

const complete = {
  SLIPWAY_LEDGER_URL: "postgresql://slipway:s3cr3t@ledger:5432/slipway",
  SLIPWAY_CATALOG_FILE: "/etc/slipway/catalog.yaml",
  SLIPWAY_TOKEN_KEY_FILE: "/etc/slipway/token.pem",
};

describe("loadConfig", () => {
  it("fills in what is not set, an empty variable included", () => {
    expect(loadConfig({ ...complete, SLIPWAY_PORT: "", SLIPWAY_RATE_LIMIT_SCALE: "0.5" })).toMatchObject({
      port: 8080,
      metricsPort: 9090,
      domainZone: "apps.localhost",
      rateLimitScale: 0.5,
      trustedProxies: [],
      logLevel: "info",
      databaseImagesFile: undefined,
    });
  });

  it.each(["valkey://:s3cr3t@slipway-valkey:6379", "rediss://cache.example.com/2"])(
    "takes %s for the store that replicas share",
    (url) => {
      expect(loadConfig({ ...complete, SLIPWAY_VALKEY_URL: url }).valkeyUrl).toBe(url);
      expect(loadConfig(complete).valkeyUrl).toBeUndefined();
      expect(() => loadConfig({ ...complete, SLIPWAY_VALKEY_URL: "http://:s3cr3t@a" })).toThrow(
        /^(?!.*s3cr3t).*SLIPWAY_VALKEY_URL/s,
      );
    },
  );

  it("searches logs where they are said to be collected", () => {
    expect(loadConfig(complete)).toMatchObject({ keepsLogs: false, keepsMetrics: false });
    expect(loadConfig({ ...complete, SLIPWAY_ANALYTICS_METRICS: "true" }).keepsMetrics).toBe(true);
    expect(loadConfig({ ...complete, SLIPWAY_ANALYTICS_LOGS: "true" }).keepsLogs).toBe(true);
    expect(() => loadConfig({ ...complete, SLIPWAY_ANALYTICS_LOGS: "yes" })).toThrow(
      "SLIPWAY_ANALYTICS_LOGS",
    );
  });

  it("exports no traces without an endpoint, and all of them without a ratio", () => {
    const url = "http://collector.observability:4318/v1/traces";
    expect(loadConfig(complete).tracing).toBeUndefined();
    expect(loadConfig({ ...complete, SLIPWAY_OTLP_TRACES_RATIO: "0.5" }).tracing).toBeUndefined();
    expect(loadConfig({ ...complete, SLIPWAY_OTLP_TRACES_URL: url }).tracing).toEqual({ url, ratio: 1 });
    const some = { SLIPWAY_OTLP_TRACES_URL: url, SLIPWAY_OTLP_TRACES_RATIO: "0.05" };
    expect(loadConfig({ ...complete, ...some }).tracing).toEqual({ url, ratio: 0.05 });
  });

  it.each([
    ["SLIPWAY_OTLP_TRACES_URL", "grpc://collector:4317"],
    ["SLIPWAY_OTLP_TRACES_URL", "https://me:s3cr3t@collector/v1/traces"],
    ["SLIPWAY_OTLP_TRACES_RATIO", "1.5"],
    ["SLIPWAY_OTLP_TRACES_RATIO", "some"],
  ])("refuses %s=%s", (name, value) => {
    expect(() => loadConfig({ ...complete, [name]: value })).toThrow(name);
    expect(() => loadConfig({ ...complete, [name]: value })).not.toThrow(/s3cr3t/);
  });

  it("reads a list of proxies", () => {
    const config = loadConfig({ ...complete, SLIPWAY_TRUSTED_PROXIES: "10.244.0.0/24, 127.0.0.1,::1" });
    expect(config.trustedProxies).toEqual(["10.244.0.0/24", "127.0.0.1", "::1"]);
  });

  it("reads a list of reserved host names and labels", () => {
    const read = (text: string) =>
      loadConfig({ ...complete, SLIPWAY_RESERVED_HOSTNAMES: text }).reservedHostnames;
    expect(read("")).toEqual([]);
    expect(read("api, platform.example.com")).toEqual(["api", "platform.example.com"]);
    expect(() => read("Api")).toThrow(/SLIPWAY_RESERVED_HOSTNAMES/);
  });

  it("reads issuers of tokens", () => {
    const issuers = [
      { issuer: "https://id.example.com/realms/a", audience: "slipway" },
      { issuer: "http://127.0.0.1:8080", audience: ["a", "b"], jwksUri: "https://keys.example.com/?set=1" },
    ];
    const config = loadConfig({ ...complete, SLIPWAY_OIDC_ISSUERS: JSON.stringify(issuers) });
    expect(config.oidcIssuers).toEqual([{ ...issuers[0], audience: ["slipway"] }, issuers[1]]);
    expect(loadConfig(complete).oidcIssuers).toEqual([]);
  });

  it.each([
    ["{", /must be JSON/],
    ["{}", /SLIPWAY_OIDC_ISSUERS/],
    ['[{"issuer":"https://a.example.com"}]', /SLIPWAY_OIDC_ISSUERS/],
    ['[{"issuer":"https://a.example.com","audience":""}]', /SLIPWAY_OIDC_ISSUERS/],
    ['[{"issuer":"http://id.example.com","audience":"a"}]', /https address/],
    ['[{"issuer":"http://127.0.0.1.example.com","audience":"a"}]', /https address/],
    ['[{"issuer":"https://u:p@id.example.com","audience":"a"}]', /https address/],
    ['[{"issuer":"https://id.example.com?a=b","audience":"a"}]', /query/],
    ['[{"issuer":"https://a.example.com","audience":"a","jwksUri":"http://a.example.com"}]', /https address/],
    ['[{"issuer":"https://a.example.com","audience":"a","extra":1}]', /SLIPWAY_OIDC_ISSUERS/],
    [JSON.stringify(Array(2).fill({ issuer: "https://a.example.com", audience: "a" })), /issuer twice/],
  ])("refuses the issuers %s", (text, message) => {
    expect(() => loadConfig({ ...complete, SLIPWAY_OIDC_ISSUERS: text })).toThrow(message);
  });

  it("names every variable that is missing or wrong, and no value", () => {
    const wrong = { SLIPWAY_LEDGER_URL: "mysql://u:s3cr3t@h/d", SLIPWAY_RATE_LIMIT_SCALE: "0" };
    let message = "";
    try {
      loadConfig(wrong);
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      message = (error as Error).message;
    }
    for (const name of [
      "SLIPWAY_LEDGER_URL",
      "SLIPWAY_CATALOG_FILE: is not set",
      "SLIPWAY_TOKEN_KEY_FILE: is not set",
      "SLIPWAY_RATE_LIMIT_SCALE",
    ]) {
      expect(message).toContain(name);
    }
    expect(message).not.toContain("s3cr3t");
  });
});
