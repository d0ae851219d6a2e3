import { failures } from "../errors/catalog.ts";

/**
 * A query whose failure means that the ledger is away.
 * @throws Failure 503
 */
export async function askLedger<T>(query: () => Promise<T>): Promise<T> {
  try {
    return await query();
  } catch (error) {
    throw failures.ledgerUnavailable(error);
  }
}
