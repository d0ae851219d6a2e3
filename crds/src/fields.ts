/** Field schemas that more than one kind, or the `/v1` API, uses. */

import { z } from "zod";
import { isCidr } from "./cidr.ts";
import { CRON_MAX_LENGTH, CRON_PATTERN, isCron } from "./cron.ts";
import { rule, withRules } from "./rule.ts";

/** Longest path in a repository, in characters. */
export const CONTEXT_PATH_MAX_LENGTH = 256;

// A character of a segment, and one that is no dot either.
const CHARACTER = "[^/\\\\\\p{Cc}]";
const NOT_DOT = "[^/.\\\\\\p{Cc}]";
// A segment is neither empty nor `.` nor `..`; RE2 has no lookahead, so the cases are spelled out.
const SEGMENT = `(${NOT_DOT}${CHARACTER}*|\\.${NOT_DOT}${CHARACTER}*|\\.\\.${CHARACTER}+)`;

/** A normalized relative path inside a repository: no absolute path, no `.` or `..` segment, no backslash. */
export const CONTEXT_PATH = new RegExp(`^(\\.|${SEGMENT}(/${SEGMENT})*)$`, "u");

/** Removes surrounding whitespace, a leading `./` and a trailing `/`; an empty path becomes `.`. */
export function normalizeContextPath(text: string): string {
  const path = text.trim().replace(/^\.\//, "").replace(/\/$/, "");
  return path === "" ? "." : path;
}

/**
 * A string whose length is counted in characters as the apiserver and JSON Schema count them (code points), where
 * JavaScript and zod count an emoji as two.
 */
export function bounded(min: number, max: number): z.ZodString {
  const fits = (value: string): boolean => {
    if (value.length > max * 2) {
      return false;
    }
    const characters = [...value].length;
    return characters >= min && characters <= max;
  };
  const message =
    min === 0 ? `must be at most ${max} characters long` : `must be ${min} to ${max} characters long`;
  return z
    .string()
    .refine(fits, { message })
    .meta(min === 0 ? { maxLength: max } : { minLength: min, maxLength: max });
}

/** Text of bounded length that a person reads or writes. */
export function text(min: number, max: number, description: string): z.ZodString {
  return bounded(min, max).describe(description);
}

/** A whole number with both bounds, as `format: int32`. */
export function integer(min: number, max: number, description: string): z.ZodInt {
  return z.int().min(min).max(max).meta({ description, format: "int32" });
}

/** Text that must match an expression; the message says what is expected. */
export function matching(pattern: RegExp, message: string, max: number, description: string): z.ZodString {
  return bounded(0, max).regex(pattern, { message }).describe(description);
}

/** JavaScript reads 30 February as 2 March; the apiserver refuses it. */
function exists(moment: string): boolean {
  const time = new Date(moment);
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(moment.slice(0, 19));
}

/** A moment in UTC, RFC 3339 with `Z`. */
export function timestamp(description: string): z.ZodType<string, string> {
  return z
    .string()
    .max(35)
    .regex(/^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$/, {
      message: "must be a moment in UTC such as 2026-01-31T12:00:00Z",
    })
    .refine(exists, { message: "must be a moment that exists" })
    .meta({ description, format: "date-time" });
}

/** An amount of money in BRL cents, as an exact decimal. */
export function decimal(description: string): z.ZodString {
  return matching(
    /^(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?$/,
    "must be a decimal number of BRL cents such as 12.5",
    40,
    description,
  );
}

/** Name of an object in Kubernetes (DNS subdomain). */
export function objectName(description: string): z.ZodString {
  return matching(
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
    "must be the name of a Kubernetes object",
    253,
    description,
  ).min(1);
}

/** The display name of a project. */
export const projectName = matching(
  /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/,
  "must be lowercase letters, digits and hyphens between them",
  32,
  "Name of the project, shown to people and part of its default domain. Not unique.",
).min(6);

export const description = text(1, 256, "What the project is for.");

/** A plan's id in the catalog. */
export const planId = matching(
  /^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$/,
  "must be the id of a plan: lowercase letters, digits, hyphens and underscores",
  63,
  "Id of the plan in the plan catalog; it must fit the project's type.",
).min(1);

/** The label below the platform's zone. */
export const subdomain = matching(
  /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/,
  "must be lowercase letters, digits and hyphens between them",
  54,
  "Label of the default domain below the platform's zone. Without it the domain is made from the name.",
).min(3);

/** A full host name in lower case: at least two labels, no wildcard, the last not all digits. */
export function hostname(about: string): z.ZodString {
  return matching(
    /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/,
    "must be a lowercase host name with at least one dot",
    253,
    about,
  ).min(4);
}

/** A container image without a scheme: registry, path, tag or digest. */
export const imageUrl = matching(
  /^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?(:[0-9]{1,5})?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[a-f0-9]{64})?$/,
  "must be an image reference such as registry.example.com/team/app:1.2.3, without http:// or https://",
  256,
  "Image reference without http:// or https://. A tag that never changes, or a digest, is advised over latest.",
).min(8);

/** Digest of an image's manifest. */
export const imageDigest = matching(
  /^sha256:[a-f0-9]{64}$/,
  "must be a digest such as sha256: and 64 hexadecimal characters",
  71,
  "Digest of the image's manifest.",
);

/** The profile of a Valkey service. */
export const profile = z
  .enum(["key_value", "cache", "queue"])
  .describe("What the Valkey service is for; it decides eviction and persistence.");

export const exposure = z
  .enum(["public", "private"])
  .describe("public gives the project a domain; private projects answer only inside the organization.");

export const paymentMode = z
  .enum(["hourly", "monthly", "yearly", "per_minute"])
  .describe("How the plan is paid; per_minute is for jobs and only for them.");

/** A range of addresses in CIDR notation. */
export const cidr = withRules(
  z.string().min(1).max(43).describe("Range of addresses, for example 203.0.113.0/24."),
  [
    rule<string>({
      cel: "isCIDR(self)",
      check: isCidr,
      message: "must be a range of addresses in CIDR notation such as 203.0.113.0/24",
      fields: [],
    }),
  ],
);

/** An entry of an access list. */
export const networkAccessItem = z
  .strictObject({
    cidr,
    description: text(0, 256, "Why the range is listed.").optional(),
  })
  .describe("A range of addresses and why it is listed.");

export const cron = withRules(
  z
    .string()
    .min(1)
    .max(CRON_MAX_LENGTH)
    .describe("Schedule in UTC: minute, hour, day of month, month, day of week (0 is Sunday)."),
  [
    rule<string>({
      cel: `self.matches(r'${CRON_PATTERN}')`,
      check: isCron,
      message:
        "must be a cron expression of exactly five fields with one space between them: minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-6",
      fields: [],
    }),
  ],
);

/** A path inside a repository, already normalized. */
export const contextPath = matching(
  CONTEXT_PATH,
  "must be a relative path inside the repository, without . or .. segments, backslashes or control characters",
  CONTEXT_PATH_MAX_LENGTH,
  "Folder of the repository that is built; . is its root.",
).min(1);

/** A shell command of a build. */
export function command(about: string): z.ZodString {
  return text(1, 256, about);
}

/** A file or folder inside a container. */
export const absolutePath = matching(
  /^\/[^\p{Cc}:]*$/u,
  "must be an absolute path",
  80,
  "Absolute path inside the container where the storage is mounted.",
).min(2);

/** A full commit id, SHA-1 or SHA-256. */
export const commitSha = matching(
  /^([a-f0-9]{40}|[a-f0-9]{64})$/,
  "must be a commit id of 40 or 64 hexadecimal characters",
  64,
  "Full commit id.",
);

/** What the image of a workload is known by. */
export const imageStatus = z
  .strictObject({
    reference: text(1, 512, "The image as asked for."),
    digest: text(1, 128, "Digest that the reference led to when it was deployed.").optional(),
  })
  .describe("The image that serves.");

/** `observedGeneration` of a status or a condition. */
export const observedGeneration = (about: string) =>
  z.int().min(0).meta({ description: about, format: "int64" }).optional();
