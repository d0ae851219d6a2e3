/** The bodies of log drains' routes. */

import { z } from "zod";
import { matching } from "../fields.ts";
import {
  DRAIN_HEADER_NAME,
  DRAIN_HEADERS_MAX,
  drainAuthorities,
  logDrainTitle,
  otlpEndpoint,
  syslogHost,
  syslogPort,
} from "../logdrain.ts";
import { PROJECT_ID } from "../names.ts";

/** Headers that the platform sets itself, or that belong to the connection. */
const OWN_HEADERS = new Set([
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Whether a drain may set a header of this name. */
export const isDrainHeader = (name: string): boolean =>
  DRAIN_HEADER_NAME.test(name) && name.length <= 64 && !OWN_HEADERS.has(name.toLowerCase());
/** Whether a header may have this value: printable ASCII without blanks at its ends. */
export const isDrainHeaderValue = (value: string): boolean =>
  value.length <= 4_096 && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value);

const headers = z
  .array(
    z.strictObject({
      name: z
        .string()
        .min(1)
        .max(64)
        .regex(DRAIN_HEADER_NAME)
        .refine(isDrainHeader, { message: "must not be a header that the platform sets" })
        .describe("Name of the header."),
      value: z
        .string()
        .min(1)
        .max(4_096)
        .refine(isDrainHeaderValue, { message: "must be printable ASCII" })
        .describe("Its value, which is never shown again."),
    }),
  )
  .max(DRAIN_HEADERS_MAX)
  .refine((all) => new Set(all.map(({ name }) => name.toLowerCase())).size === all.length, {
    message: "must not name anything twice",
  })
  .describe("Headers of every request, such as Authorization; of OTLP alone.");

const clientCertificate = z
  .strictObject({
    certificate: drainAuthorities.describe("PEM certificate, and those between it and its authority."),
    key: z
      .string()
      .min(1)
      .max(16_384)
      .regex(/^\s*-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*-----END [A-Z ]*PRIVATE KEY-----\s*$/, {
        message: "must be a private key in PEM",
      })
      .describe("Its private key in PEM, which is never shown again."),
  })
  .describe("What the platform identifies itself with to the receiver.");

const otlpHttp = z
  .strictObject({
    endpoint: otlpEndpoint.refine((text) => URL.canParse(text), { message: "must be a URL" }),
  })
  .describe("A receiver of OTLP over HTTP.");
const syslog = z
  .strictObject({ host: syslogHost, port: syslogPort.default(6514) })
  .describe("A receiver of syslog (RFC 5424) over TLS.");

export const createLogDrainBody = z
  .strictObject({
    name: logDrainTitle,
    project_id: matching(PROJECT_ID, "must be a project's id", 40, "The only project whose lines are sent.")
      .min(1)
      .optional(),
    otlp_http: otlpHttp.optional(),
    syslog: syslog.optional(),
    headers: headers.optional(),
    ca: drainAuthorities.optional(),
    client_certificate: clientCertificate.optional(),
  })
  .refine((body) => (body.otlp_http === undefined) !== (body.syslog === undefined), {
    message: "either otlp_http or syslog is required",
    path: ["otlp_http"],
  })
  .refine((body) => body.headers === undefined || body.otlp_http !== undefined, {
    message: "belongs to otlp_http alone",
    path: ["headers"],
  });

export const patchLogDrainBody = z
  .strictObject({
    name: logDrainTitle.optional(),
    otlp_http: otlpHttp.describe("Of a drain that is one of OTLP.").optional(),
    syslog: syslog.describe("Of a drain that is one of syslog.").optional(),
    headers: headers.describe("The complete list, of OTLP alone. Absent, all stay.").optional(),
    ca: drainAuthorities.nullable().describe("Authorities; null: the public ones.").optional(),
    client_certificate: clientCertificate.nullable().describe("null removes it.").optional(),
  })
  .refine((body) => Object.keys(body).length > 0, { message: "must have at least one member" })
  .meta({ minProperties: 1 });
