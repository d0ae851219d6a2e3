import { type Environment, parseSettings } from "@slipway/process";
import { z } from "zod";

/** Settings of the chart test: the names are those of the stack file where it has the value. */
const schema = z.object({
  SLIPWAY_URL: z.url({ protocol: /^https?$/ }),
  // A Secret that was made from a file may end in a line feed.
  SLIPWAY_API_KEY: z.string().trim().min(1),
  SLIPWAY_INGRESS_URL: z.url({ protocol: /^https?$/ }).optional(),
  SLIPWAY_IMAGE_HTTP: z.string(),
  SLIPWAY_IMAGE_JOB: z.string().optional(),
  SLIPWAY_TEST_APPLICATION_PLAN: z.string().default("basic"),
  SLIPWAY_TEST_APPLICATION_PORT: z.coerce.number().int().min(1).max(65_535).default(8080),
  SLIPWAY_TEST_APPLICATION_PATH: z.string().startsWith("/").default("/"),
  SLIPWAY_TEST_JOB_PLAN: z.string().default("job-basic"),
  SLIPWAY_TEST_TIMEOUT_SECONDS: z.coerce.number().int().min(10).max(1_800).default(180),
});

export interface Settings {
  /** Base address of the API, without `/v1`. */
  url: string;
  apiKey: string;
  /** Address of the ingress controller inside the cluster; undefined: the application is not requested. */
  ingressUrl: string | undefined;
  application: { image: string; plan: string; port: number; path: string };
  job: { image: string; plan: string };
  /** For all steps together; deleting what they created comes on top ({@link CLEANUP_MS}). */
  timeoutMs: number;
}

/** How long the test may delete what it created after it failed, in milliseconds. */
export const CLEANUP_MS = 60_000;

/** @throws ConfigError naming every variable that is missing or wrong */
export function readSettings(env: Environment): Settings {
  const given = parseSettings(schema, env);
  return {
    url: given.SLIPWAY_URL,
    apiKey: given.SLIPWAY_API_KEY,
    ingressUrl: given.SLIPWAY_INGRESS_URL,
    application: {
      image: given.SLIPWAY_IMAGE_HTTP,
      plan: given.SLIPWAY_TEST_APPLICATION_PLAN,
      port: given.SLIPWAY_TEST_APPLICATION_PORT,
      path: given.SLIPWAY_TEST_APPLICATION_PATH,
    },
    job: {
      image: given.SLIPWAY_IMAGE_JOB ?? given.SLIPWAY_IMAGE_HTTP,
      plan: given.SLIPWAY_TEST_JOB_PLAN,
    },
    timeoutMs: given.SLIPWAY_TEST_TIMEOUT_SECONDS * 1_000,
  };
}
