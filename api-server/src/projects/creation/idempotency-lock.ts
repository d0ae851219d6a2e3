import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  freeIdempotencyKey,
  type IdempotencyRecord,
  type KeyName,
  type Ledger,
  letGoOfIdempotencyKey,
  renewIdempotencyKey,
  reserveIdempotencyKey,
} from "@slipway/ledger";
import { ConcurrencyLimiter } from "@slipway/process";
import { failures } from "../../errors/catalog.ts";
import { askLedger } from "../../ledger/errors.ts";

/*
 * Creations under one Idempotency-Key follow one another, over all replicas: in this process by a lock, between
 * processes by the holder that the ledger notes beside the key. No transaction is open meanwhile.
 */

/** A holder that has given no sign of life for so long is taken for dead. */
const HOLD_SECONDS = 20;
const RENEW_EVERY_MS = 5_000;
/** How long a call waits for its turn. */
const WAIT_MS = 15_000;
const LOOK_EVERY_MS = 100;

/** One replica, as the ledger knows it: what it holds it may take again, since its own calls follow one another. */
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

/** The time in which nobody else creates under the key. */
export interface Turn {
  projectId: string;
  /** Whether an earlier call may have written something under this id. */
  leftover: boolean;
  /** Asks once more whether the key is this call's. */
  isOurs(): Promise<boolean>;
  /** Frees the key: the next call gets another id. */
  free(): Promise<void>;
}

/**
 * Runs work when it is its turn.
 * @param newId makes the id of what is created when this call is the first with the key
 * @param settle what the record comes to that needs no turn: undefined while there is something to do
 * @throws Failure 503 when another replica has the turn for too long, or the ledger is away
 */
export async function inTurn<T>(
  ledger: Ledger,
  name: KeyName,
  bodySha256: Buffer,
  newId: () => string,
  settle: (record: IdempotencyRecord) => Promise<T | undefined>,
  work: (turn: Turn) => Promise<T>,
): Promise<T> {
  const { holder, byKey } = replicaOf(ledger);
  const deadline = Date.now() + WAIT_MS;
  const projectId = newId();
  const reserve = () =>
    askLedger(() =>
      reserveIdempotencyKey(ledger, { ...name, bodySha256, projectId, holder, holdSeconds: HOLD_SECONDS }),
    );
  const mine = async (): Promise<T> => {
    let record = await reserve();
    for (;;) {
      const settled = await settle(record);
      if (settled !== undefined) {
        return settled;
      }
      if (record.holder === holder) {
        break;
      }
      if (Date.now() > deadline) {
        throw failures.creationInProgress();
      }
      await sleep(LOOK_EVERY_MS);
      record = await reserve();
    }
    const isOurs = () => askLedger(() => renewIdempotencyKey(ledger, name, holder, HOLD_SECONDS));
    const beat = setInterval(() => void isOurs().catch(() => undefined), RENEW_EVERY_MS);
    try {
      return await work({
        projectId: record.project_id,
        leftover: record.project_id !== projectId,
        isOurs,
        free: () => askLedger(() => freeIdempotencyKey(ledger, name, holder)),
      });
    } finally {
      clearInterval(beat);
      // Otherwise it is the next one's when its time is over.
      await letGoOfIdempotencyKey(ledger, name, holder).catch(() => undefined);
    }
  };
  return byKey.run(JSON.stringify([name.organizationId, name.key]), mine);
}
