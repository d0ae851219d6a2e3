import { z } from "zod";

/**
 * The environment variables with which a process reaches the store; also part of a process's own schema.
 * Without `SLIPWAY_ANALYTICS_URL` there are no analytics.
 */
export const analyticsVariables = {
  SLIPWAY_ANALYTICS_URL: z
    .url({ protocol: /^https?$/ })
    .transform((url) => url.replace(/\/+$/, ""))
    .optional(),
  SLIPWAY_ANALYTICS_USERNAME: z.string().min(1).max(64).default("default"),
  SLIPWAY_ANALYTICS_PASSWORD_FILE: z.string().min(1).optional(),
  SLIPWAY_ANALYTICS_DATABASE: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,62}$/, "must be a name of lower-case letters, digits and _")
    .default("slipway"),
  SLIPWAY_ANALYTICS_CA_FILE: z.string().min(1).optional(),
  SLIPWAY_ANALYTICS_CLUSTER: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,63}$/, "must be a cluster's name")
    .optional(),
};

const environment = z.object(analyticsVariables);

/** What {@link analyticsVariables} are read to. */
export type AnalyticsVariables = z.infer<typeof environment>;

/** Where the store is and who asks. */
export interface AnalyticsSettings {
  /** Address of ClickHouse's HTTP interface, without a slash at the end. */
  url: string;
  username: string;
  /** File with the password, read again for every new connection to the store; undefined: none is required. */
  passwordFile: string | undefined;
  database: string;
  /** PEM file of the authorities that certify the store; undefined: the public ones. */
  caFile: string | undefined;
  /** Name of the cluster on which replicated tables are made; undefined: tables of a single server. */
  cluster: string | undefined;
}

/** The settings out of parsed {@link analyticsVariables}; undefined without an address. */
export function settingsFrom(
  variables: AnalyticsVariables & { SLIPWAY_ANALYTICS_URL: string },
): AnalyticsSettings;
export function settingsFrom(variables: AnalyticsVariables): AnalyticsSettings | undefined;
export function settingsFrom(variables: AnalyticsVariables): AnalyticsSettings | undefined {
  const url = variables.SLIPWAY_ANALYTICS_URL;
  if (url === undefined) {
    return undefined;
  }
  return {
    url,
    username: variables.SLIPWAY_ANALYTICS_USERNAME,
    passwordFile: variables.SLIPWAY_ANALYTICS_PASSWORD_FILE,
    database: variables.SLIPWAY_ANALYTICS_DATABASE,
    caFile: variables.SLIPWAY_ANALYTICS_CA_FILE,
    cluster: variables.SLIPWAY_ANALYTICS_CLUSTER,
  };
}

/**
 * Reads the settings from environment variables; an empty one counts as absent.
 * @throws z.ZodError naming every variable that is wrong
 */
export function analyticsSettings(env: Record<string, string | undefined>): AnalyticsSettings | undefined {
  const given = Object.entries(env).filter(([, value]) => value !== "");
  return settingsFrom(environment.parse(Object.fromEntries(given)));
}
