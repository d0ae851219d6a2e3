import type { Ledger } from "@slipway/ledger";
import { withTimeout } from "@slipway/process";

/** Whether the ledger answers within `ms`. Never rejects. */
export function isLedgerReachable(ledger: Ledger, ms: number): Promise<boolean> {
  const query = ledger.selectNoFrom((eb) => eb.val(1).as("one")).execute();
  return withTimeout(query, ms).then(
    () => true,
    () => false,
  );
}
