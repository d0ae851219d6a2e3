/** The environment variables that the operator reads, with their forms and defaults. */

import { isIP, isIPv6 } from "node:net";
import { analyticsVariables } from "@slipway/analytics";
import { MAX_SHARDS } from "@slipway/controller-runtime";
import { allowedHosts, githubEnvironment } from "@slipway/git";
import { commaSeparated, dnsLabel, dnsName, jsonText, listOf, logLevel, portNumber } from "@slipway/process";
import { tracingVariables } from "@slipway/process/tracing";
import { z } from "zod";
import { ALLOW_LISTS } from "./applications/access.ts";
import { OWN_ANNOTATIONS } from "./applications/access-list.ts";
import { OUTSIDE_TYPES } from "./databases/settings.ts";
import { invoiceTerms, overdueTerms } from "./invoices/settings.ts";
import { parseCidr } from "./net/cidr.ts";
import { smtpIssues, smtpVariables } from "./notifications/smtp-environment.ts";
import { placement } from "./workload/app.ts";
import { FIRST_TEMPLATE_VERSION, NEWEST_TEMPLATE_VERSION } from "./workload/template-version.ts";

const cidrList = commaSeparated.transform((cidrs, context) => {
  for (const cidr of cidrs) {
    try {
      parseCidr(cidr);
    } catch (error) {
      context.addIssue({ code: "custom", message: (error as Error).message });
    }
  }
  return cidrs;
});

const portList = listOf(z.string().regex(/^[1-9][0-9]{0,4}$/, "must be ports")).transform((ports) =>
  ports.map(Number),
);

/** `ip` or `ip:port`, an IPv6 address with a port in brackets. */
const dnsServer = z.string().refine(
  (text) => {
    const [, bracketed, plain = text, port = "53"] =
      /^(?:\[(.+)\]|([^:]+))(?::([0-9]{1,5}))?$/.exec(text) ?? [];
    return (bracketed === undefined ? isIP(plain) > 0 : isIPv6(bracketed)) && Number(port) <= 65_535;
  },
  { message: "must be ip or ip:port" },
);

export const annotations = z.string().transform((text, context) => {
  try {
    return z.record(z.string(), z.string()).parse(JSON.parse(text));
  } catch {
    context.addIssue({ code: "custom", message: "must be a JSON object of strings" });
    return z.NEVER;
  }
});

export const pods = jsonText.pipe(placement);

const variables = z.object({
  SLIPWAY_LEDGER_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  SLIPWAY_CATALOG_FILE: z.string().min(1),
  SLIPWAY_DOMAIN_ZONE: dnsName.default("apps.localhost"),
  SLIPWAY_RESERVED_HOSTNAMES: listOf(dnsName).default([]),
  SLIPWAY_DNS_SERVERS: listOf(dnsServer).default([]),
  SLIPWAY_NAMESPACE: dnsLabel,
  POD_NAME: z.string().min(1).optional(),
  SLIPWAY_SHARD: z.coerce.number().int().min(0).default(0),
  SLIPWAY_SHARDS: z.coerce.number().int().min(1).max(MAX_SHARDS).default(1),
  SLIPWAY_INGRESS_CLASS: dnsName.default("traefik"),
  SLIPWAY_INGRESS_NAMESPACE: dnsLabel.default("slipway-ingress"),
  SLIPWAY_INGRESS_ANNOTATIONS: annotations.default({}),
  SLIPWAY_INGRESS_ALLOW_LIST: z.enum(ALLOW_LISTS).default("traefik"),
  SLIPWAY_CERTIFICATE_ISSUER: dnsName.optional(),
  SLIPWAY_INGRESS_PROBE_URL: z.url({ protocol: /^https?$/ }).optional(),
  SLIPWAY_DNS_NAMESPACE: dnsLabel.default("kube-system"),
  SLIPWAY_EGRESS_DENIED_CIDRS: cidrList,
  SLIPWAY_ROLLOUT_DEADLINE_SECONDS: z.coerce.number().int().min(10).max(3_600).default(300),
  SLIPWAY_VARIABLE_ROLLOUTS: z.coerce.number().int().min(1).max(1_000).default(5),
  SLIPWAY_KUBELET_CA_FILE: z.string().min(1).optional(),
  SLIPWAY_KUBELET_VERIFY: z.enum(["true", "false"]).default("true"),
  SLIPWAY_JOB_RUN_LIMIT_SECONDS: z.coerce.number().int().min(60).max(3_600).default(3_600),
  SLIPWAY_JOB_ADMISSION_WINDOW_SECONDS: z.coerce.number().int().min(1).max(3_600).default(120),
  SLIPWAY_JOB_START_DEADLINE_SECONDS: z.coerce.number().int().min(1).max(86_400).default(600),
  SLIPWAY_DATABASE_IMAGES_FILE: z.string().min(1).optional(),
  SLIPWAY_BACKUPS_FILE: z.string().min(1).optional(),
  SLIPWAY_BACKUPS_S3_DIR: z.string().min(1).optional(),
  SLIPWAY_BILLING_METERING: z.enum(["true", "false"]).default("false"),
  SLIPWAY_BILLING_INVOICES: invoiceTerms.optional(),
  SLIPWAY_BILLING_OVERDUE: overdueTerms.optional(),
  SLIPWAY_LOG_DRAINS: z.enum(["true", "false"]).default("false"),
  SLIPWAY_REQUEST_SCALING: z.enum(["true", "false"]).default("false"),
  SLIPWAY_SLEEP: z.enum(["true", "false"]).default("false"),
  SLIPWAY_COLLECTOR_NAMESPACE: dnsLabel.default("slipway-collector"),
  SLIPWAY_COLLECTOR_CONTAINER: dnsLabel.default("traefik"),
  SLIPWAY_PLATFORM_BACKUP_DIR: z.string().min(1).optional(),
  SLIPWAY_BUILDS_FILE: z.string().min(1).optional(),
  SLIPWAY_REGISTRY_KEY_FILE: z.string().min(1).optional(),
  SLIPWAY_BUILD_TOOLS_DIR: z.string().min(1).optional(),
  SLIPWAY_GIT_ALLOWED_HOSTS: allowedHosts,
  SLIPWAY_GIT_CA_FILE: z.string().min(1).optional(),
  SLIPWAY_WEBHOOK_ALLOWED_HOSTS: allowedHosts,
  SLIPWAY_WEBHOOK_CA_FILE: z.string().min(1).optional(),
  ...smtpVariables,
  ...githubEnvironment,
  SLIPWAY_DATABASE_OUTSIDE: z.enum(OUTSIDE_TYPES).default("None"),
  SLIPWAY_PLAN_CHANGE_SECONDS: z.coerce.number().int().min(10).max(3_600).default(600),
  SLIPWAY_PREVIOUS_PASSWORD_SECONDS: z.coerce.number().int().min(0).max(604_800).default(86_400),
  SLIPWAY_DATABASE_VOLUME_GRACE_SECONDS: z.coerce.number().int().min(0).max(31_536_000).default(86_400),
  SLIPWAY_DATABASE_HOST: z.union([dnsName, z.ipv4(), z.ipv6()]).optional(),
  SLIPWAY_TENANT_PODS: pods.optional(),
  SLIPWAY_DATABASE_PODS: pods.optional(),
  SLIPWAY_POD_TEMPLATE_VERSION: z.coerce
    .number()
    .int()
    .min(FIRST_TEMPLATE_VERSION)
    .max(NEWEST_TEMPLATE_VERSION)
    .default(FIRST_TEMPLATE_VERSION),
  SLIPWAY_APISERVER_CIDRS: cidrList.default([]),
  SLIPWAY_APISERVER_PORTS: portList.default([443, 6443]),
  ...tracingVariables,
  ...analyticsVariables,
  SLIPWAY_LOG_LEVEL: logLevel.default("info"),
  SLIPWAY_METRICS_PORT: portNumber.default(9090),
});

export const environment = variables.superRefine((e, context) => {
  for (const [name, message] of smtpIssues(e)) {
    context.addIssue({ code: "custom", path: [name], message });
  }
  const own = OWN_ANNOTATIONS[e.SLIPWAY_INGRESS_ALLOW_LIST];
  for (const name of own.filter((key) => key in e.SLIPWAY_INGRESS_ANNOTATIONS)) {
    const path = ["SLIPWAY_INGRESS_ANNOTATIONS"];
    context.addIssue({ code: "custom", path, message: `${name} is set by each project's access list` });
  }
  if (e.SLIPWAY_SHARD >= e.SLIPWAY_SHARDS) {
    const path = ["SLIPWAY_SHARD"];
    context.addIssue({ code: "custom", path, message: "must be less than SLIPWAY_SHARDS" });
  }
  if (e.SLIPWAY_DATABASE_OUTSIDE === "NodePort" && e.SLIPWAY_DATABASE_HOST === undefined) {
    const path = ["SLIPWAY_DATABASE_HOST"];
    context.addIssue({ code: "custom", path, message: "must name where node ports are reached" });
  }
  if (e.SLIPWAY_BUILDS_FILE !== undefined && e.SLIPWAY_REGISTRY_KEY_FILE === undefined) {
    const path = ["SLIPWAY_REGISTRY_KEY_FILE"];
    context.addIssue({
      code: "custom",
      path,
      message: "must name the key that signs tokens of the registry",
    });
  }
});
