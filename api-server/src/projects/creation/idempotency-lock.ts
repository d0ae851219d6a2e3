import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  deleteIdempotencyKey,
  type IdempotencyRecord,
  type KeyName,
  type Ledger,
  releaseIdempotencyKey,
  renewIdempotencyKey,
  reserveIdempotencyKey,
} from "@slipway/ledger";
import { ConcurrencyLimiter } from "@slipway/process";
import { failures } from "../../errors/catalog.ts";
import { withLedgerErrors } from "../../ledger/availability.ts";

/*
 * Creations under one Idempotency-Key run one after the other, over all replicas: within this process by a
 * ConcurrencyLimiter, between processes by the holder in the key's row of the ledger. No transaction is open meanwhile.
 */

/** A holder that has not renewed its lock for so long counts as dead. */
const HOLD_SECONDS = 20;
const RENEW_EVERY_MS = 5_000;
/** How long a call waits for the lock. */
const WAIT_MS = 15_000;
const POLL_INTERVAL_MS = 100;

/** The identity of this replica in the ledger. It may acquire again a lock that it has, since its own calls run one after the other. */
interface Replica {
  holder: string;
  byKey: ConcurrencyLimiter;
}
const replicas = new WeakMap<Ledger, Replica>();

function replicaOf(ledger: Ledger): Replica {
  const known = replicas.get(ledger) ?? {
    holder: randomUUID(),
    byKey: new ConcurrencyLimiter({ perKey: 1, waitMs: WAIT_MS, refuse: failures.creationInProgress }),
  };
  replicas.set(ledger, known);
  return known;
}

/** While a call has it, no other call creates under the key. */
export interface IdempotencyLock {
  projectId: string;
  /** Whether an earlier call may have written something under this id. */
  leftover: boolean;
  /** Renews the lock. False when another call has it. */
  isOurs(): Promise<boolean>;
  /** Frees the key: the next call gets another id. */
  free(): Promise<void>;
}

/**
 * Runs work under the lock of an Idempotency-Key.
 * @param newId generates the id of what is created when this call is the first with the key
 * @param existing the result that a record has already, for which the lock is not needed; undefined when there is none
 * @throws Failure 503 when another replica keeps the lock for too long, or the ledger is unavailable
 */
export async function withIdempotencyLock<T>(
  ledger: Ledger,
  name: KeyName,
  bodySha256: Buffer,
  newId: () => string,
  existing: (record: IdempotencyRecord) => Promise<T | undefined>,
  work: (lock: IdempotencyLock) => Promise<T>,
): Promise<T> {
  const { holder, byKey } = replicaOf(ledger);
  const deadline = Date.now() + WAIT_MS;
  const projectId = newId();
  const reserve = () =>
    withLedgerErrors(() =>
      reserveIdempotencyKey(ledger, { ...name, bodySha256, projectId, holder, holdSeconds: HOLD_SECONDS }),
    );
  const runLocked = async (): Promise<T> => {
    let record = await reserve();
    for (;;) {
      const found = await existing(record);
      if (found !== undefined) {
        return found;
      }
      if (record.holder === holder) {
        break;
      }
      if (Date.now() > deadline) {
        throw failures.creationInProgress();
      }
      await sleep(POLL_INTERVAL_MS);
      record = await reserve();
    }
    const isOurs = () => withLedgerErrors(() => renewIdempotencyKey(ledger, name, holder, HOLD_SECONDS));
    const renewal = setInterval(() => void isOurs().catch(() => undefined), RENEW_EVERY_MS);
    try {
      return await work({
        projectId: record.project_id,
        leftover: record.project_id !== projectId,
        isOurs,
        free: () => withLedgerErrors(() => deleteIdempotencyKey(ledger, name, holder)),
      });
    } finally {
      clearInterval(renewal);
      // On failure the lock expires.
      await releaseIdempotencyKey(ledger, name, holder).catch(() => undefined);
    }
  };
  return byKey.run(JSON.stringify([name.organizationId, name.key]), runLocked);
}
