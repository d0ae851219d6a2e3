/** Settings of a process, read from environment variables once, at start. */

import { z } from "zod";

/** Environment variables, such as `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings that are missing or wrong. The message has one line for each and no value, and needs no stack trace. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/**
 * Reads the settings from environment variables. An empty variable counts as absent.
 * @param mayBeEmpty variables for which empty is a value
 * @throws ConfigError naming every variable that is missing or wrong, never its value
 */
export function parseSettings<T extends z.ZodType>(
  schema: T,
  env: Environment,
  mayBeEmpty: readonly string[] = [],
): z.output<T> {
  const given: Environment = Object.fromEntries(
    Object.entries(env).filter(([name, value]) => value !== "" || mayBeEmpty.includes(name)),
  );
  const parsed = schema.safeParse(given);
  if (parsed.success) {
    return parsed.data;
  }
  const lines = parsed.error.issues.map(({ code, path, message }) => {
    const isMissing = code !== "custom" && given[String(path[0])] === undefined;
    return `  ${path.join(".")}: ${isMissing ? "is not set" : message}`;
  });
  throw new ConfigError(`the environment is not complete:\n${lines.join("\n")}`);
}

export const logLevel = z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]);

/** A port to listen on; 0 picks a free one. */
export const portNumber = z.coerce.number().int().min(0).max(65_535);

export const listenAddress = z.union([z.ipv4(), z.ipv6()], "must be an IP address");

/** One or more DNS labels, in lower case. */
export const DNS_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

export const dnsName = z.string().max(253).regex(DNS_NAME, "must be a DNS name");

export const dnsLabel = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, "must be a DNS label");

/** Items between commas, without spaces around them; empty ones are dropped. */
export const commaSeparated = z.string().transform((text) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== ""),
);

/** {@link commaSeparated} of one kind of item. */
export const listOf = (item: z.ZodType<string, string>) => commaSeparated.pipe(z.array(item));

/** Text that is JSON: what it says, to be piped into the form that it must have. */
export const jsonText = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue({ code: "custom", message: "must be JSON" });
    return z.NEVER;
  }
});

/** IP addresses and CIDRs between commas. */
export const addressList = listOf(
  z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()], "must be addresses or CIDRs"),
);
