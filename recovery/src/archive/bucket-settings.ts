/** How a bucket is reached: the variables that Amazon's own tools read. */

import { readFileSync } from "node:fs";
import { z } from "zod";

const variables = z.object({
  AWS_ENDPOINT_URL_S3: z.url({ protocol: /^https?$/ }).optional(),
  AWS_ENDPOINT_URL: z.url({ protocol: /^https?$/ }).optional(),
  AWS_REGION: z.string().min(1).optional(),
  AWS_DEFAULT_REGION: z.string().min(1).optional(),
  /** File of authorities as PEM, beside those that Node trusts. */
  AWS_CA_BUNDLE: z.string().min(1).optional(),
  /** `https://endpoint/bucket/key` in place of `https://bucket.endpoint/key`: what most stores but Amazon's need. */
  SLIPWAY_S3_FORCE_PATH_STYLE: z.enum(["true", "false"]).default("true"),
});

export interface BucketSettings {
  bucket: string;
  /** Empty, or with a slash at its end. */
  prefix: string;
  /** Amazon's own when absent. */
  endpoint?: string;
  region: string;
  forcePathStyle: boolean;
  /** Authorities as PEM. */
  ca?: string;
}

/**
 * Keys are not among them: the SDK finds them, in `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` or in the file that
 * `AWS_SHARED_CREDENTIALS_FILE` names.
 * @throws Error that lists what is wrong
 */
export function bucketSettings(bucket: string, path: string, environment: NodeJS.ProcessEnv): BucketSettings {
  // A variable without a value counts as one that is not set, as it does for Amazon's tools.
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const { data, error } = variables.safeParse(given);
  if (error) {
    throw new Error(`no valid settings of the bucket:\n${z.prettifyError(error)}`);
  }
  return {
    bucket,
    prefix: path === "" || path.endsWith("/") ? path : `${path}/`,
    endpoint: data.AWS_ENDPOINT_URL_S3 ?? data.AWS_ENDPOINT_URL,
    region: data.AWS_REGION ?? data.AWS_DEFAULT_REGION ?? "us-east-1",
    forcePathStyle: data.SLIPWAY_S3_FORCE_PATH_STYLE === "true",
    ...(data.AWS_CA_BUNDLE === undefined ? {} : { ca: readFileSync(data.AWS_CA_BUNDLE, "utf8") }),
  };
}
