import type { GitEvent } from "@slipway/git";
import {
  dropGitDelivery,
  finishGitDelivery,
  type GitDelivery,
  type HeldDelivery,
  holdGitDeliveries,
  type Ledger,
  postponeGitDelivery,
  queueGitDelivery,
} from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { withLedgerErrors } from "../ledger/availability.ts";

/** Deliveries that wait: an organization's own fill its own queue alone. */
const LIMITS = { perOrganization: 1_000, perConnection: 250 };

/** Deliveries of hooks from their answer until they are worked off. Everything throws Failure 503 when the ledger is unavailable. */
export interface DeliveryQueue {
  /** @throws Failure 503 when too many wait */
  queue(delivery: GitDelivery, event: GitEvent): Promise<"queued" | "duplicate">;
  /** Takes those that are due, the organization first of which fewest are worked at. */
  hold(bounds: { most: number; perOrganization: number; holdMs: number }): Promise<HeldDelivery[]>;
  /** It was worked off, and is known from then on. */
  finish(held: HeldDelivery): Promise<void>;
  /** Drops it; the server may send it again. */
  drop(held: HeldDelivery): Promise<void>;
  postpone(held: HeldDelivery, afterMs: number): Promise<void>;
}

/** The ledger's. */
export function ledgerDeliveries(ledger: Ledger): DeliveryQueue {
  return {
    queue: async (delivery, event) => {
      const text = JSON.stringify(event);
      const queued = await withLedgerErrors(() => queueGitDelivery(ledger, delivery, text, LIMITS));
      if (queued === "full") {
        throw failures.serverBusy();
      }
      return queued;
    },
    hold: (bounds) => withLedgerErrors(() => holdGitDeliveries(ledger, bounds)),
    finish: (held) => withLedgerErrors(() => finishGitDelivery(ledger, held)),
    drop: (held) => withLedgerErrors(() => dropGitDelivery(ledger, held)),
    postpone: (held, afterMs) => withLedgerErrors(() => postponeGitDelivery(ledger, held, afterMs)),
  };
}
