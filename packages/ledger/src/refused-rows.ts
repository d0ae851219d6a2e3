/** What the ledger refuses for what is in it, and keeping that from holding up the rest of a batch. */

/** An error of PostgreSQL: of those classes another attempt would fail, too. */
export interface RefusedRow extends Error {
  /** SQLSTATE, five characters. */
  code: string;
  constraint?: string;
}

/** Whether PostgreSQL refused what is in a row: a data exception (class 22) or a broken constraint (class 23). */
export const isRefusedRow = (error: unknown): error is RefusedRow =>
  error instanceof Error && "code" in error && /^2[23]/.test(String(error.code));

/** Whether a statement took longer than it may (57014): half of its rows may not. */
const isTooSlow = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "57014";

export interface PartsOptions<T, R> {
  /** Records a part, as a whole or not at all. */
  record: (part: readonly T[]) => Promise<R>;
  /** The result of one that is refused alone. */
  refused: (one: T, error: RefusedRow) => R | Promise<R>;
  /** Called before each part of a batch that was refused or took too long. */
  pause?: () => Promise<void>;
}

/**
 * Records a batch; where the ledger refuses one of it, halves find that one with few transactions, and the others are recorded. One that takes
 * longer than a statement may is recorded in halves, too.
 * @returns the results of the parts, in the batch's order
 * @throws what `record` throws, unless it is a refused row: some parts may be recorded by then
 */
export async function recordInParts<T, R>(batch: readonly T[], options: PartsOptions<T, R>): Promise<R[]> {
  const { record, refused, pause } = options;
  try {
    return [await record(batch)];
  } catch (error) {
    const [first] = batch;
    if (batch.length === 1 && first !== undefined && isRefusedRow(error)) {
      return [await refused(first, error)];
    }
    if (batch.length < 2 || !(isRefusedRow(error) || isTooSlow(error))) {
      throw error;
    }
    const half = Math.ceil(batch.length / 2);
    const results: R[] = [];
    for (const part of [batch.slice(0, half), batch.slice(half)]) {
      await pause?.();
      results.push(...(await recordInParts(part, options)));
    }
    return results;
  }
}
