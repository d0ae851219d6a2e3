/** The operator's settings, read from the environment once, at start. */

import { isIP, isIPv6 } from "node:net";
import { z } from "zod";
import { parseCidr } from "./net/cidr.ts";
import { ALLOW_LISTS, type AllowList } from "./project/http/access.ts";
import { OWN_ANNOTATIONS } from "./project/http/accessList.ts";

const dnsLabel = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "must be a DNS label");
const dnsName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/, "must be a DNS name");
const portNumber = z.coerce.number().int().min(0).max(65_535);

const cidrList = z.string().transform((text, context) => {
  const cidrs = text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  for (const cidr of cidrs) {
    try {
      parseCidr(cidr);
    } catch (error) {
      context.addIssue({ code: "custom", message: (error as Error).message });
    }
  }
  return cidrs;
});

const listOf = (item: z.ZodType<string, string>) =>
  z
    .string()
    .transform((text) =>
      text
        .split(",")
        .map((part) => part.trim())
        .filter((part) => part !== ""),
    )
    .pipe(z.array(item));

/** `ip` or `ip:port`, an IPv6 address with a port in brackets. */
const dnsServer = z.string().refine(
  (text) => {
    const [, bracketed, plain = text, port = "53"] =
      /^(?:\[(.+)\]|([^:]+))(?::([0-9]{1,5}))?$/.exec(text) ?? [];
    return (bracketed === undefined ? isIP(plain) > 0 : isIPv6(bracketed)) && Number(port) <= 65_535;
  },
  { message: "must be ip or ip:port" },
);

const annotations = z.string().transform((text, context) => {
  try {
    return z.record(z.string(), z.string()).parse(JSON.parse(text));
  } catch {
    context.addIssue({ code: "custom", message: "must be a JSON object of strings" });
    return z.NEVER;
  }
});

const variables = z.object({
  SLIPWAY_LEDGER_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  SLIPWAY_CATALOG_FILE: z.string().min(1),
  SLIPWAY_DOMAIN_ZONE: dnsName.default("apps.localhost"),
  SLIPWAY_RESERVED_HOSTNAMES: listOf(dnsName).default([]),
  SLIPWAY_DNS_SERVERS: listOf(dnsServer).default([]),
  SLIPWAY_NAMESPACE: dnsLabel,
  POD_NAME: z.string().min(1).optional(),
  SLIPWAY_INGRESS_CLASS: dnsName.default("traefik"),
  SLIPWAY_INGRESS_NAMESPACE: dnsLabel.default("slipway-ingress"),
  SLIPWAY_INGRESS_ANNOTATIONS: annotations.default({}),
  SLIPWAY_INGRESS_ALLOW_LIST: z.enum(ALLOW_LISTS).default("traefik"),
  SLIPWAY_CERTIFICATE_ISSUER: dnsName.optional(),
  SLIPWAY_INGRESS_PROBE_URL: z.url({ protocol: /^https?$/ }).optional(),
  SLIPWAY_DNS_NAMESPACE: dnsLabel.default("kube-system"),
  SLIPWAY_EGRESS_DENIED_CIDRS: cidrList,
  SLIPWAY_ROLLOUT_DEADLINE_SECONDS: z.coerce.number().int().min(10).max(3_600).default(300),
  SLIPWAY_LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
  SLIPWAY_METRICS_PORT: portNumber.default(9090),
});

const environment = variables.superRefine((e, context) => {
  const own = OWN_ANNOTATIONS[e.SLIPWAY_INGRESS_ALLOW_LIST];
  for (const name of own.filter((key) => key in e.SLIPWAY_INGRESS_ANNOTATIONS)) {
    const path = ["SLIPWAY_INGRESS_ANNOTATIONS"];
    context.addIssue({ code: "custom", path, message: `${name} is set by each project's access list` });
  }
});

/** Settings of one operator process. */
export interface Config {
  ledgerUrl: string;
  catalogFile: string;
  /** Zone of default domains. */
  domainZone: string;
  /** Hostnames that no project may have; a single label stands for `<label>.<zone>`. */
  reservedHostnames: string[];
  /** `ip` or `ip:port` of the servers that are asked who owns a custom domain; none for the system's. */
  dnsServers: string[];
  /** Where the leader Lease lives. */
  namespace: string;
  /** Who holds the Lease; absent outside a cluster. */
  podName?: string;
  ingress: {
    className: string;
    /** Namespace of the controller's pods. */
    namespace: string;
    /** On every project's Ingress. */
    annotations: Readonly<Record<string, string>>;
    /** How the controller is told whom a project admits. */
    allowList: AllowList;
    /** ClusterIssuer of cert-manager for custom domains; without one they are served plain. */
    certificateIssuer?: string;
    /** Address of the ingress inside the cluster; without one a route counts as ready once it is written. */
    probeUrl?: string;
  };
  dnsNamespace: string;
  egressDeniedCidrs: string[];
  /** Seconds a rollout may take without progress before it counts as failed. */
  rolloutDeadlineSeconds: number;
  logLevel: string;
  metricsPort: number;
}

/** Settings that are missing or wrong; the message has one line for each. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

/**
 * Reads the settings from environment variables. An empty variable counts as absent.
 * @throws ConfigError naming every variable that is missing or wrong, never its value.
 */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  // Denying nothing must be said: an operator that forgets the variable would open nodes and pods to tenants.
  const parsed = environment.safeParse({
    ...given,
    SLIPWAY_EGRESS_DENIED_CIDRS: env.SLIPWAY_EGRESS_DENIED_CIDRS,
  });
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `  ${issue.path.join(".")}: ${issue.message}`);
    throw new ConfigError(`The environment is not complete:\n${lines.join("\n")}`);
  }
  const e = parsed.data;
  return {
    ledgerUrl: e.SLIPWAY_LEDGER_URL,
    catalogFile: e.SLIPWAY_CATALOG_FILE,
    domainZone: e.SLIPWAY_DOMAIN_ZONE,
    reservedHostnames: e.SLIPWAY_RESERVED_HOSTNAMES,
    dnsServers: e.SLIPWAY_DNS_SERVERS,
    namespace: e.SLIPWAY_NAMESPACE,
    podName: e.POD_NAME,
    ingress: {
      className: e.SLIPWAY_INGRESS_CLASS,
      namespace: e.SLIPWAY_INGRESS_NAMESPACE,
      annotations: e.SLIPWAY_INGRESS_ANNOTATIONS,
      allowList: e.SLIPWAY_INGRESS_ALLOW_LIST,
      certificateIssuer: e.SLIPWAY_CERTIFICATE_ISSUER,
      probeUrl: e.SLIPWAY_INGRESS_PROBE_URL,
    },
    dnsNamespace: e.SLIPWAY_DNS_NAMESPACE,
    egressDeniedCidrs: e.SLIPWAY_EGRESS_DENIED_CIDRS,
    rolloutDeadlineSeconds: e.SLIPWAY_ROLLOUT_DEADLINE_SECONDS,
    logLevel: e.SLIPWAY_LOG_LEVEL,
    metricsPort: e.SLIPWAY_METRICS_PORT,
  };
}
