import { failures } from "../errors/catalog.ts";

/**
 * Runs a query of the ledger. Any error of it means that the ledger is unavailable.
 * @throws Failure 503
 */
export async function withLedgerErrors<T>(query: () => Promise<T>): Promise<T> {
  try {
    return await query();
  } catch (error) {
    throw failures.ledgerUnavailable(error);
  }
}
