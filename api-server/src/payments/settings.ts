import { ConcurrencyLimiter } from "@slipway/process";
import { failures } from "../errors/catalog.ts";
import type { PaymentSecrets } from "./secrets.ts";

/** How webhooks of payments are received. */
export interface Payments {
  /** What they are signed with. */
  secrets: PaymentSecrets;
  /** Whether events of Stripe's test mode count as payments. */
  acceptsStripeTests: boolean;
  /** Of both forms together, once a signature is verified. */
  recording: ConcurrencyLimiter;
}

/** Events that are recorded concurrently in a process: each has a connection of the ledger's eight, and waits for locks there. */
const MAX_RECORDING = 2;
const MAX_WAITING = 64;
const WAIT_MS = 10_000;

/** Webhooks of payments with these secrets. */
export function openPayments(
  secrets: PaymentSecrets,
  { acceptsStripeTests = false }: { acceptsStripeTests?: boolean | undefined } = {},
): Payments {
  const limits = { total: MAX_RECORDING, perKey: MAX_RECORDING, waiting: MAX_WAITING, waitMs: WAIT_MS };
  const recording = new ConcurrencyLimiter({ ...limits, refuse: failures.serverBusy });
  return { secrets, acceptsStripeTests, recording };
}
