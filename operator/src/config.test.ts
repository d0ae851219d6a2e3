import { describe, expect, test } from "vitest";
import { ConfigError, loadConfig } from "./config.ts";

const complete = {
  SLIPWAY_LEDGER_URL: "postgresql://slipway:secret@ledger/slipway",
  SLIPWAY_CATALOG_FILE: "/etc/slipway/catalog.yaml",
  SLIPWAY_NAMESPACE: "slipway-system",
  SLIPWAY_EGRESS_DENIED_CIDRS: "10.244.0.0/24, 10.96.0.0/16",
};

describe("loadConfig", () => {
  test("fills in what has a default and splits lists", () => {
    expect(loadConfig(complete)).toMatchObject({
      domainZone: "apps.localhost",
      egressDeniedCidrs: ["10.244.0.0/24", "10.96.0.0/16"],
      ingress: {
        className: "traefik",
        namespace: "slipway-ingress",
        annotations: {},
        allowList: "traefik",
        probeUrl: undefined,
      },
      metricsPort: 9090,
    });
  });

  test("takes an empty variable for an absent one, but lets the denied ranges be empty on purpose", () => {
    const config = loadConfig({ ...complete, SLIPWAY_DOMAIN_ZONE: "", SLIPWAY_EGRESS_DENIED_CIDRS: "" });
    expect(config.domainZone).toBe("apps.localhost");
    expect(config.egressDeniedCidrs).toEqual([]);
  });

  test("names every wrong variable at once and none of their values", () => {
    const wrong = {
      ...complete,
      SLIPWAY_LEDGER_URL: "mysql://root:hunter2@db",
      SLIPWAY_EGRESS_DENIED_CIDRS: undefined,
      SLIPWAY_INGRESS_ANNOTATIONS: "[]",
      SLIPWAY_INGRESS_ALLOW_LIST: "apache",
    };
    expect(() => loadConfig(wrong)).toThrow(ConfigError);
    try {
      loadConfig(wrong);
    } catch (error) {
      const { message } = error as Error;
      expect(message).toContain("SLIPWAY_LEDGER_URL");
      expect(message).toContain("SLIPWAY_EGRESS_DENIED_CIDRS");
      expect(message).toContain("SLIPWAY_INGRESS_ANNOTATIONS");
      expect(message).toContain("SLIPWAY_INGRESS_ALLOW_LIST");
      expect(message).not.toContain("hunter2");
    }
  });

  test("takes no annotation for every Ingress that is each project's own", () => {
    const annotations = { "nginx.ingress.kubernetes.io/whitelist-source-range": "10.0.0.0/8" };
    const env = { ...complete, SLIPWAY_INGRESS_ANNOTATIONS: JSON.stringify(annotations) };
    expect(loadConfig(env).ingress.annotations).toEqual(annotations);
    expect(() => loadConfig({ ...env, SLIPWAY_INGRESS_ALLOW_LIST: "nginx" })).toThrow(
      "whitelist-source-range",
    );
  });
});
