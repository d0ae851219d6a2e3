/** Which passwords of a database's user an engine is to accept, and what becomes of the one before a renewal. */

import {
  credentialKeys,
  type DatabaseCredentials,
  type DatabaseStatus,
  hashWithPassword,
} from "@slipway/crds";

/** What an Event says when a password that was kept has ended. */
export const PASSWORD_ENDS: Readonly<Record<PasswordEnd, { type: "Normal" | "Warning"; note: string }>> = {
  unused: {
    type: "Normal",
    note: "The password before the last renewal is no longer accepted: nothing that was started with it is left.",
  },
  expired: {
    type: "Warning",
    note: "The password before the last renewal is no longer accepted: its time is over. Something that was started with it by reference is left, and cannot open connections: deploy the projects that refer to this database again, or see why their deployments have not succeeded.",
  },
  replaced: {
    type: "Normal",
    note: "The password before the last but one renewal is no longer accepted: two are at the most. Instances that still have it cannot open connections until they have been replaced.",
  },
  revoked: {
    type: "Normal",
    note: "The passwords before the last renewal are no longer accepted, as it was to revoke them. Instances that still have one cannot open connections until they have been replaced.",
  },
};

/** Between two checks of whether something still uses a previous password, in milliseconds. */
export const PREVIOUS_PASSWORD_POLL_MS = 15_000;

const { password, previousPassword, revokePrevious, keptPassword, keptUntil } = credentialKeys;

/** Keys that are about what came before the current password. */
const EARLIER = [previousPassword, revokePrevious, keptPassword, keptUntil] as const;

/** A password beside the current one, and the moment at which it ends in any case (RFC 3339). */
export interface PreviousPassword {
  password: string;
  until: string;
}

/** What an engine is to accept, and what the Secret is to have once it does. */
export interface PasswordPlan {
  /** Content of the Secret for an engine: with `previous-password` where that is to be accepted beside the current one, and nothing else of earlier ones. */
  credentials: DatabaseCredentials;
  previous?: PreviousPassword;
  /** Keys of the Secret that are to change once this is in force; null removes one. Undefined where it is as it should be. */
  change?: Readonly<Record<string, string | null>>;
  /** Why a password that was kept ends with this; undefined where none does. */
  ended?: PasswordEnd;
}

/** `expired` is that its time is over though something uses it. */
export type PasswordEnd = "unused" | "expired" | "replaced" | "revoked";

/** What a decision depends on, beside the Secret. */
export interface PasswordUse {
  /** Whether something may be started, or runs, with a password of this hash. */
  isUsed(hash: string): Promise<boolean>;
  now: Date;
  /** How long a previous password is accepted at the most, in milliseconds; 0 where none is. */
  keepMs: number;
}

/**
 * Decides about the passwords in a Secret. The one before a renewal is kept only for what was started with it by reference, and until
 * one moment that is set once, and is earlier where the bound has become shorter. A renewal while one is kept replaces that one, unless nothing has got the password between the two.
 * @throws what `isUsed` does
 */
export async function planPasswords(
  credentials: DatabaseCredentials,
  { isUsed, now, keepMs }: PasswordUse,
): Promise<PasswordPlan> {
  let previous: PreviousPassword | undefined;
  let expired = false;
  for (const candidate of candidatesOf(credentials, now, keepMs)) {
    const isOther = candidate.password !== credentials[password];
    if (isOther && (await isUsed(hashWithPassword(credentials, candidate.password)))) {
      expired = !(Date.parse(candidate.until) > now.getTime());
      previous = expired ? undefined : candidate;
      break;
    }
  }
  const wanted: DatabaseCredentials = previous
    ? { [keptPassword]: previous.password, [keptUntil]: previous.until }
    : {};
  const changed = EARLIER.filter((key) => credentials[key] !== wanted[key]);
  const others = Object.entries(credentials).filter(([key]) => !(EARLIER as readonly string[]).includes(key));
  return {
    credentials: {
      ...Object.fromEntries(others),
      ...(previous ? { [previousPassword]: previous.password } : {}),
    },
    previous,
    change:
      changed.length === 0 ? undefined : Object.fromEntries(changed.map((key) => [key, wanted[key] ?? null])),
    ended: endOf(credentials, previous, expired),
  };
}

function endOf(
  credentials: DatabaseCredentials,
  previous: PreviousPassword | undefined,
  expired: boolean,
): PasswordEnd | undefined {
  const kept = credentials[keptPassword];
  if (kept === undefined || kept === previous?.password) {
    return undefined;
  }
  if (credentials[revokePrevious] === "true") {
    return "revoked";
  }
  return previous ? "replaced" : expired ? "expired" : "unused";
}

/** The passwords of which one may be accepted beside the current one, the newest first: that before a pending renewal, and one that is kept. */
function candidatesOf(credentials: DatabaseCredentials, now: Date, keepMs: number): PreviousPassword[] {
  if (credentials[revokePrevious] === "true") {
    return [];
  }
  const [pending, kept] = [credentials[previousPassword], credentials[keptPassword]];
  const atTheLatest = new Date(now.getTime() + keepMs).toISOString();
  const until = credentials[keptUntil] ?? "";
  return [
    ...(pending === undefined ? [] : [{ password: pending, until: atTheLatest }]),
    // A shorter bound than before is one of what is kept, too.
    ...(kept === undefined
      ? []
      : [{ password: kept, until: Date.parse(atTheLatest) < Date.parse(until) ? atTheLatest : until }]),
  ];
}

/**
 * The status that the engines compare with: it has a previous password while the Secret has one, since what came between two writes may
 * not be in it.
 */
export function statusWithKept(status: DatabaseStatus, credentials: DatabaseCredentials): DatabaseStatus {
  return credentials[keptPassword] === undefined || status.previousPassword !== undefined
    ? status
    : { ...status, previousPassword: { until: credentials[keptUntil] ?? "" } };
}
