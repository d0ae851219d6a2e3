/** Logging in to Amazon's container registry. The one place that speaks to AWS. */

import { createHash } from "node:crypto";
import type { Clock } from "@slipway/process";

/** What a user gave to log in with. */
export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  region: string;
  accountId: string;
}

/** A login that expires, after 12 hours as of 2026. */
export interface RegistryToken {
  /** Host of the registry, such as `123456789012.dkr.ecr.eu-west-1.amazonaws.com`. */
  host: string;
  username: string;
  password: string;
  expiresAt: Date;
}

/** Why there is no token, in words for the owner of the project: nothing secret is in it. */
export class RegistryLoginError extends Error {
  override readonly name = "RegistryLoginError";
  /** Whether AWS answered, and refused. */
  readonly refused: boolean;

  constructor(message: string, options: { refused: boolean; cause: unknown }) {
    super(message, { cause: options.cause });
    this.refused = options.refused;
  }
}

/**
 * Gets a token.
 * @throws RegistryLoginError
 */
export type RegistryLogin = (credentials: AwsCredentials, signal: AbortSignal) => Promise<RegistryToken>;

/**
 * Logs in through ECR's `GetAuthorizationToken`.
 * @param endpoint in place of AWS's own address of the region
 */
export function ecrLogin({ endpoint }: { endpoint?: string } = {}): RegistryLogin {
  return async ({ accessKeyId, secretAccessKey, region, accountId }, signal) => {
    // Loaded by the first project that needs it: most platforms never do, and it needs memory.
    const { ECRClient, GetAuthorizationTokenCommand } = await import("@aws-sdk/client-ecr");
    const client = new ECRClient({
      region,
      endpoint,
      credentials: { accessKeyId, secretAccessKey },
      maxAttempts: 2,
    });
    try {
      const { authorizationData } = await client.send(new GetAuthorizationTokenCommand({}), {
        abortSignal: AbortSignal.any([signal, AbortSignal.timeout(10_000)]),
      });
      return tokenOf(authorizationData?.[0], `${accountId}.dkr.ecr.${region}.${suffixOf(region)}`);
    } catch (error) {
      throw toLoginError(error);
    } finally {
      client.destroy();
    }
  };
}

function suffixOf(region: string): string {
  return region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

/** `authorizationToken` is Base64 of `user:password`. It opens every registry that the credentials may read. */
function tokenOf(
  data: { authorizationToken?: string; expiresAt?: Date } | undefined,
  host: string,
): RegistryToken {
  const text = Buffer.from(data?.authorizationToken ?? "", "base64").toString();
  const colon = text.indexOf(":");
  if (colon < 1 || !data?.expiresAt) {
    throw new RegistryLoginError("AWS answered without a token.", { refused: false, cause: undefined });
  }
  return {
    host,
    username: text.slice(0, colon),
    password: text.slice(colon + 1),
    expiresAt: data.expiresAt,
  };
}

function toLoginError(error: unknown): RegistryLoginError {
  if (error instanceof RegistryLoginError) {
    return error;
  }
  const status = (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
  const refused = status !== undefined && status >= 400 && status < 500;
  return new RegistryLoginError(
    refused ? "AWS refuses the credentials of the registry." : "AWS does not answer.",
    { refused, cause: error },
  );
}

// Spares AWS, and the workers that wait for it, the log-ins that have just failed.

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
