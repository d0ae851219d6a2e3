/** Spares AWS, and the workers that wait for it, the log-ins that have just failed. */

import { createHash } from "node:crypto";
import type { Clock } from "@slipway/process";
import { type AwsCredentials, type RegistryLogin, RegistryLoginError } from "./ecr.ts";

const FIRST_MS = 60_000;
const LONGEST_MS = 15 * 60_000;
/** Credentials whose failure is remembered; the oldest are forgotten first. */
const MOST = 1_000;

interface Failure {
  error: RegistryLoginError;
  waitMs: number;
  /** Monotonic time until which the failure is the answer. */
  until: number;
}

/** The same log-in, which fails immediately for a while with credentials that failed: 1 minute, then longer, at most 15. */
export function withBackoff(login: RegistryLogin, clock: Clock): RegistryLogin {
  const failures = new Map<string, Failure>();
  return async (credentials, signal) => {
    const key = keyOf(credentials);
    const known = failures.get(key);
    if (known && known.until > clock.monotonic()) {
      throw known.error;
    }
    try {
      const token = await login(credentials, signal);
      failures.delete(key);
      return token;
    } catch (error) {
      if (error instanceof RegistryLoginError) {
        const waitMs = Math.min(known ? known.waitMs * 2 : FIRST_MS, LONGEST_MS);
        failures.delete(key);
        failures.set(key, { error, waitMs, until: clock.monotonic() + waitMs });
        forgetOldest(failures);
      }
      throw error;
    }
  };
}

function forgetOldest(failures: Map<string, Failure>): void {
  const [oldest] = failures.keys();
  if (failures.size > MOST && oldest !== undefined) {
    failures.delete(oldest);
  }
}

/** Other credentials are tried immediately. The secret itself is not kept. */
function keyOf({ accessKeyId, secretAccessKey, region, accountId }: AwsCredentials): string {
  const text = JSON.stringify([accessKeyId, secretAccessKey, region, accountId]);
  return createHash("sha256").update(text).digest("base64");
}
