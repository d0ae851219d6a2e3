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

/** Whether a statement took longer than it may (57014), or waited for a lock so long (55P03): half of its rows may not. */
export const isTooSlow = (error: unknown): error is Error =>
  error instanceof Error && "code" in error && (error.code === "57014" || error.code === "55P03");

/** Whether PostgreSQL answered, and refused this statement alone: the next one may succeed. Where it is away or ends there is none. */
export const isStatementError = (error: unknown): boolean =>
  error instanceof Error && "severity" in error && error.severity === "ERROR";

/** Whether another process had a lock for too long (55P03). */
export const isLockTimeout = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "55P03";

/** Whether PostgreSQL ended this transaction because it and another one waited for each other (40P01): another attempt may succeed. */
export const isDeadlock = (error: unknown): error is Error =>
  error instanceof Error && "code" in error && error.code === "40P01";

export interface PartsOptions<T, R> {
  /** Records a part, as a whole or not at all. */
  record: (part: readonly T[]) => Promise<R>;
  /** The result of one that is refused alone. */
  refused: (one: T, error: RefusedRow) => R | Promise<R>;
  /**
   * The result of one that takes too long alone. Where it is given, a batch that takes longer than a statement may is recorded in halves, too; it
   * fails as a whole otherwise.
   */
  tooSlow?: (one: T, error: Error) => R | Promise<R>;
  /** Called before each part of a batch that was refused or took too long. */
  pause?: () => Promise<void>;
}

/** Of a ledger that is slow as a whole all parts are: so many statements more than find one that alone is. */
const SLOW_STATEMENTS = 3;

/**
 * Records a batch; where the ledger refuses one of it, or takes too long for it, halves find that one with few transactions, and the others are
 * recorded.
 * @returns the results of the parts, in the batch's order
 * @throws what `record` throws, unless it is such a row, and where too many parts take too long: some may be recorded by then
 */
export function recordInParts<T, R>(batch: readonly T[], options: PartsOptions<T, R>): Promise<R[]> {
  const slowLeft = Math.ceil(Math.log2(Math.max(1, batch.length))) + 1 + SLOW_STATEMENTS;
  return recordPart(batch, options, { slowLeft });
}

async function recordPart<T, R>(
  batch: readonly T[],
  options: PartsOptions<T, R>,
  budget: { slowLeft: number },
): Promise<R[]> {
  const { record, refused, tooSlow, pause } = options;
  try {
    return [await record(batch)];
  } catch (error) {
    const [first] = batch;
    let alone: ((one: T) => R | Promise<R>) | undefined;
    if (isRefusedRow(error)) {
      alone = (one) => refused(one, error);
    } else if (tooSlow && isTooSlow(error)) {
      budget.slowLeft -= 1;
      alone = budget.slowLeft > 0 ? (one) => tooSlow(one, error) : undefined;
    }
    if (first === undefined || alone === undefined) {
      throw error;
    }
    if (batch.length === 1) {
      return [await alone(first)];
    }
    const half = Math.ceil(batch.length / 2);
    const results: R[] = [];
    for (const part of [batch.slice(0, half), batch.slice(half)]) {
      await pause?.();
      results.push(...(await recordPart(part, options, budget)));
    }
    return results;
  }
}
