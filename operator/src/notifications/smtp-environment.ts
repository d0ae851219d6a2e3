/** The settings of mail, as environment variables. */

import { dnsName, portNumber } from "@slipway/process";
import { z } from "zod";
import type { SmtpSettings } from "./send-mail.ts";

export const smtpVariables = {
  SLIPWAY_SMTP_HOST: z.union([dnsName, z.ipv4(), z.ipv6()]).optional(),
  SLIPWAY_SMTP_PORT: portNumber.default(587),
  SLIPWAY_SMTP_TLS: z.enum(["starttls", "implicit", "none"]).default("starttls"),
  SLIPWAY_SMTP_USER: z.string().min(1).optional(),
  SLIPWAY_SMTP_PASSWORD: z.string().min(1).optional(),
  SLIPWAY_SMTP_CA_FILE: z.string().min(1).optional(),
  SLIPWAY_EMAIL_FROM: z.email().max(254).optional(),
  SLIPWAY_EMAIL_PUBLIC_URL: z
    .url({ protocol: /^https?$/ })
    .max(512)
    .transform((url) => url.replace(/\/+$/, ""))
    .optional(),
};

type Values = z.output<z.ZodObject<typeof smtpVariables>>;

/** Names of variables that are missing or too many, and why. */
export function smtpIssues(e: Values): [keyof Values, string][] {
  if (e.SLIPWAY_SMTP_HOST === undefined) {
    return [];
  }
  const issues: [keyof Values, string | false][] = [
    ["SLIPWAY_EMAIL_FROM", e.SLIPWAY_EMAIL_FROM === undefined && "must be the address that mails are from"],
    [
      "SLIPWAY_EMAIL_PUBLIC_URL",
      e.SLIPWAY_EMAIL_PUBLIC_URL === undefined && "must be where recipients reach the API to unsubscribe",
    ],
    [
      "SLIPWAY_SMTP_PASSWORD",
      (e.SLIPWAY_SMTP_USER === undefined) !== (e.SLIPWAY_SMTP_PASSWORD === undefined) &&
        "must be set with SLIPWAY_SMTP_USER, and without it not",
    ],
    [
      "SLIPWAY_SMTP_USER",
      e.SLIPWAY_SMTP_USER !== undefined &&
        e.SLIPWAY_SMTP_TLS === "none" &&
        "must not be set where the connection is not encrypted",
    ],
  ];
  return issues.flatMap(([name, why]) => (why === false ? [] : [[name, why]]));
}

export type SmtpConfig = SmtpSettings & { caFile?: string };

/** @returns undefined where the platform sends no mail */
export function smtpConfig(e: Values): SmtpConfig | undefined {
  const { SLIPWAY_SMTP_HOST: host, SLIPWAY_EMAIL_FROM: from, SLIPWAY_EMAIL_PUBLIC_URL: publicUrl } = e;
  return host === undefined || from === undefined || publicUrl === undefined
    ? undefined
    : {
        host,
        port: e.SLIPWAY_SMTP_PORT,
        tls: e.SLIPWAY_SMTP_TLS,
        user: e.SLIPWAY_SMTP_USER,
        password: e.SLIPWAY_SMTP_PASSWORD,
        from,
        publicUrl,
        caFile: e.SLIPWAY_SMTP_CA_FILE,
      };
}
