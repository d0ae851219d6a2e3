import { z } from "zod";
import { conditions } from "./conditions.ts";
import { integer, matching, objectName, observedGeneration, text } from "./fields.ts";
import type { Resource } from "./metadata.ts";
import { PROJECT_ID } from "./names.ts";
import { rule, type TransitionRule, withRules } from "./rule.ts";

/** Receivers of an organization's own to which lines of its projects' logs are sent. */

/** Of the Deployment and the service account that deliver. The chart creates both. */
export const LOG_DRAINS = "slipway-log-drains";
/** What they may do in an organization's namespace; the chart creates this ClusterRole. */
export const LOG_DRAINS_ROLE = `${LOG_DRAINS}-organization`;

/** Condition types of a LogDrain. */
export const logDrainConditions = {
  /** Positive: its Secret, certificate and authorities can be used. */
  Ready: "Ready",
  /** Positive, once something was sent: the receiver took what was sent last. */
  Delivering: "Delivering",
} as const;
export type LogDrainCondition = keyof typeof logDrainConditions;

/** Reasons of a LogDrain's conditions. */
export const logDrainReasons = {
  // Ready
  Configured: "Configured",
  SecretNotFound: "SecretNotFound",
  SecretInvalid: "SecretInvalid",
  ReceiverInvalid: "ReceiverInvalid",
  // Delivering
  Delivered: "Delivered",
  ReceiverUnavailable: "ReceiverUnavailable",
  ReceiverRefused: "ReceiverRefused",
  CertificateUntrusted: "CertificateUntrusted",
  AddressRefused: "AddressRefused",
} as const;
export type LogDrainReason = keyof typeof logDrainReasons;
/** What conditions of a LogDrain may say. */
export interface LogDrainConditionCatalog {
  type: LogDrainCondition;
  reason: LogDrainReason;
}

/** The form of a drain's name, which is its id. */
export const LOG_DRAIN_ID = /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/;

/** Headers of one drain. */
export const DRAIN_HEADERS_MAX = 16;
/** Form of a header's name: what a Secret's key takes behind {@link HEADER_KEY_PREFIX}. */
export const DRAIN_HEADER_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
/** Keys of a drain's Secret: each header is a key of its own; a client's certificate and key as in `kubernetes.io/tls`. */
export const HEADER_KEY_PREFIX = "header.";
export const CLIENT_CERTIFICATE_KEY = "tls.crt";
export const CLIENT_KEY_KEY = "tls.key";

export const logDrainTitle = text(1, 64, "Name that people gave it. Not unique.");

/** Where OTLP goes; `/v1/logs` is appended to it. */
export const otlpEndpoint = matching(
  /^https:\/\/([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(\/[A-Za-z0-9._~-]+)*$/,
  "must be an address https://host[:port][/path] without a slash at the end",
  512,
  "Address of the receiver, to which /v1/logs is appended.",
);

export const syslogHost = matching(
  /^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$/,
  "must be a host name or an address",
  253,
  "Host name or address of the receiver, which its certificate must name.",
).min(1);
export const syslogPort = integer(1, 65_535, "Port of syslog over TLS; 6514 is usual.");

export const drainAuthorities = matching(
  /^\s*-----BEGIN CERTIFICATE-----[\s\S]*-----END CERTIFICATE-----\s*$/,
  "must be certificates in PEM",
  32_768,
  "PEM certificates of the authorities that certify the receiver, in place of the public ones.",
);

const fields = z
  .strictObject({
    displayName: logDrainTitle,
    projectRef: z
      .strictObject({
        name: matching(PROJECT_ID, "must be a project's id", 40, "Id of the project.").min(1),
      })
      .describe("The only project whose lines are sent; all of the organization without it. Fixed.")
      .optional(),
    otlpHttp: z.strictObject({ endpoint: otlpEndpoint }).describe("A receiver of OTLP over HTTP.").optional(),
    syslog: z
      .strictObject({ host: syslogHost, port: syslogPort })
      .describe("A receiver of syslog (RFC 5424) over TLS.")
      .optional(),
    ca: drainAuthorities.optional(),
    secretRef: z
      .strictObject({ name: objectName("Name of the Secret.") })
      .describe(
        "Secret of the same namespace with headers of the requests (header.NAME, of OTLP alone) and the client's certificate and key (tls.crt, tls.key).",
      )
      .optional(),
  })
  .describe("Where lines of logs are sent.");
export type LogDrainSpec = z.output<typeof fields>;

const fixedProject: TransitionRule<LogDrainSpec> = {
  cel: "has(self.projectRef) == has(oldSelf.projectRef) && (!has(self.projectRef) || self.projectRef.name == oldSelf.projectRef.name)",
  check: (self, old) => self.projectRef?.name === old.projectRef?.name,
  message: "{projectRef} cannot be changed",
  fields: ["projectRef"],
};

/** The spec of a LogDrain. */
export const logDrainSpec = withRules(
  fields,
  [
    rule<LogDrainSpec>({
      cel: "has(self.otlpHttp) != has(self.syslog)",
      check: ({ otlpHttp, syslog }) => (otlpHttp === undefined) !== (syslog === undefined),
      message: "either {otlpHttp} or {syslog} is required",
      fields: ["otlpHttp", "syslog"],
    }),
    rule<LogDrainSpec>({
      // Go takes ports of any length.
      cel: "!has(self.otlpHttp) || isURL(self.otlpHttp.endpoint) && (url(self.otlpHttp.endpoint).getPort() == '' || int(url(self.otlpHttp.endpoint).getPort()) <= 65535)",
      check: ({ otlpHttp }) => otlpHttp === undefined || URL.canParse(otlpHttp.endpoint),
      message: "{otlpHttp.endpoint} must be a URL",
      fields: ["otlpHttp.endpoint"],
    }),
  ],
  [fixedProject],
);

const lines = (about: string) => z.int().min(0).meta({ description: about, format: "int64" }).optional();

export const logDrainStatus = z
  .strictObject({
    observedGeneration: observedGeneration("Generation that this is about."),
    conditions: conditions.optional(),
    lagSeconds: integer(
      0,
      2_147_483_647,
      "By how much the receiver is behind the store: 0 below a minute, whole minutes otherwise, written once a minute at most.",
    ).optional(),
    refusedLines: lines("Lines that the receiver refused for good, since the drain was created."),
    skippedLines: lines("Lines that were left out since the receiver was away for too long."),
  })
  .describe("What becomes of the lines.");
export type LogDrainStatus = z.output<typeof logDrainStatus>;

/** A receiver of lines of logs. */
export type LogDrain = Resource<"LogDrain", LogDrainSpec, LogDrainStatus>;
