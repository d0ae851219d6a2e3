/** Whether the ledger refuses a row for its content: a data exception or a broken constraint of PostgreSQL. */
export const isWrongRow = (error: unknown): boolean =>
  error instanceof Error && "code" in error && /^2[23]/.test(String(error.code));
