import { ConfigError } from "@slipway/process";
import { describe, expect, test } from "vitest";
import { loadConfig } from "./config.ts";

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

  test("reaches databases from inside alone unless configured, and node ports only where they are", () => {
    expect(loadConfig(complete).databases).toEqual({
      imagesFile: undefined,
      outside: { type: "None", host: undefined },
      planChangeMs: 600_000,
      previousPasswordMs: 86_400_000,
      volumeGraceMs: 86_400_000,
    });
    const env = {
      ...complete,
      SLIPWAY_DATABASE_IMAGES_FILE: "/etc/slipway/databases/images.yaml",
      SLIPWAY_DATABASE_OUTSIDE: "NodePort",
      SLIPWAY_APISERVER_CIDRS: "10.96.0.1/32",
      SLIPWAY_APISERVER_PORTS: "6443",
    };
    expect(() => loadConfig(env)).toThrow("SLIPWAY_DATABASE_HOST");
    expect(loadConfig({ ...env, SLIPWAY_DATABASE_HOST: "192.0.2.1" }).databases).toEqual({
      imagesFile: "/etc/slipway/databases/images.yaml",
      outside: { type: "NodePort", host: "192.0.2.1" },
      planChangeMs: 600_000,
      previousPasswordMs: 86_400_000,
      volumeGraceMs: 86_400_000,
      apiserver: { cidrs: ["10.96.0.1/32"], ports: [6443] },
    });
    expect(() => loadConfig({ ...complete, SLIPWAY_APISERVER_PORTS: "https" })).toThrow(
      "SLIPWAY_APISERVER_PORTS",
    );
  });

  test("exports traces only where configured", () => {
    const SLIPWAY_OTLP_TRACES_URL = "http://collector.observability:4318/v1/traces";
    expect(loadConfig(complete).tracing).toBeUndefined();
    expect(loadConfig({ ...complete, SLIPWAY_OTLP_TRACES_URL }).tracing).toEqual({
      url: SLIPWAY_OTLP_TRACES_URL,
      ratio: 1,
    });
    expect(() => loadConfig({ ...complete, SLIPWAY_OTLP_TRACES_RATIO: "2" })).toThrow(
      "SLIPWAY_OTLP_TRACES_RATIO",
    );
  });

  test("reads an empty variable as an absent one, but accepts empty denied ranges", () => {
    const config = loadConfig({ ...complete, SLIPWAY_DOMAIN_ZONE: "", SLIPWAY_EGRESS_DENIED_CIDRS: "" });
    expect(config.domainZone).toBe("apps.localhost");
    expect(config.egressDeniedCidrs).toEqual([]);
  });

  test("names all wrong variables together and none of their values", () => {
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

  test("reads lists of reserved names and of name servers, and refuses what is neither", () => {
    const env = {
      ...complete,
      SLIPWAY_RESERVED_HOSTNAMES: "api, status.example.com",
      SLIPWAY_DNS_SERVERS: "192.0.2.53,192.0.2.54:5353, 2001:db8::53,[2001:db8::54]:5353",
      SLIPWAY_CERTIFICATE_ISSUER: "letsencrypt",
    };
    const config = loadConfig(env);
    expect(config.reservedHostnames).toEqual(["api", "status.example.com"]);
    expect(config.dnsServers).toEqual([
      "192.0.2.53",
      "192.0.2.54:5353",
      "2001:db8::53",
      "[2001:db8::54]:5353",
    ]);
    expect(config.ingress.certificateIssuer).toBe("letsencrypt");
    expect(loadConfig(complete)).toMatchObject({ reservedHostnames: [], dnsServers: [] });
    for (const wrong of ["ns.example.com", "192.0.2.53:99999", "[192.0.2.53]:53", "192.0.2.53:dns"]) {
      expect(() => loadConfig({ ...env, SLIPWAY_DNS_SERVERS: wrong })).toThrow("SLIPWAY_DNS_SERVERS");
    }
    expect(() => loadConfig({ ...env, SLIPWAY_RESERVED_HOSTNAMES: "API!" })).toThrow(
      "SLIPWAY_RESERVED_HOSTNAMES",
    );
  });

  test("accepts no annotation for every Ingress that is each project's own", () => {
    const annotations = { "nginx.ingress.kubernetes.io/whitelist-source-range": "10.0.0.0/8" };
    const env = { ...complete, SLIPWAY_INGRESS_ANNOTATIONS: JSON.stringify(annotations) };
    expect(loadConfig(env).ingress.annotations).toEqual(annotations);
    expect(() => loadConfig({ ...env, SLIPWAY_INGRESS_ALLOW_LIST: "nginx" })).toThrow(
      "whitelist-source-range",
    );
  });

  test("accepts a deadline for rollouts between ten seconds and an hour", () => {
    expect(loadConfig(complete).rolloutDeadlineSeconds).toBe(300);
    const deadline = (text: string) => loadConfig({ ...complete, SLIPWAY_ROLLOUT_DEADLINE_SECONDS: text });
    expect(deadline("90").rolloutDeadlineSeconds).toBe(90);
    for (const wrong of ["9", "3601", "1.5", "soon"]) {
      expect(() => deadline(wrong)).toThrow("SLIPWAY_ROLLOUT_DEADLINE_SECONDS");
    }
  });
});
