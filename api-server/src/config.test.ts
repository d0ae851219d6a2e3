import { describe, expect, it } from "vitest";
import { ConfigError, loadConfig } from "./config.ts";

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
    });
  });

  it("reads a list of proxies", () => {
    const config = loadConfig({ ...complete, SLIPWAY_TRUSTED_PROXIES: "10.244.0.0/24, 127.0.0.1,::1" });
    expect(config.trustedProxies).toEqual(["10.244.0.0/24", "127.0.0.1", "::1"]);
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
