import { type Ledger, ReadTimeout } from "@slipway/ledger";
import { withTimeout } from "@slipway/process";
import { failures } from "../errors/catalog.ts";

/**
 * Runs a query of the ledger. Any error of it means that the ledger is unavailable, but for a read that had no time to end.
 * @throws Failure 503
 */
export async function withLedgerErrors<T>(query: () => Promise<T>): Promise<T> {
  try {
    return await query();
  } catch (error) {
    throw error instanceof ReadTimeout ? failures.serverBusy() : failures.ledgerUnavailable(error);
  }
}

/** Whether the ledger answers within `ms`. Never rejects. */
export function isLedgerReachable(ledger: Ledger, ms: number): Promise<boolean> {
  const query = ledger.selectNoFrom((eb) => eb.val(1).as("one")).execute();
  return withTimeout(query, ms).then(
    () => true,
    () => false,
  );
}
