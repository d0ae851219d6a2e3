/** What goes wrong, in ClickHouse's own terms. */

/** Errors that are found before the engine is asked, by ClickHouse's names and numbers. */
const codes = {
  BAD_ARGUMENTS: 36,
  NOT_IMPLEMENTED: 48,
  SYNTAX_ERROR: 62,
  READONLY: 164,
  UNKNOWN_USER: 192,
  TOO_MANY_SIMULTANEOUS_QUERIES: 202,
  EMPTY_QUERY: 211,
  QUERY_IS_TOO_LARGE: 229,
  SUPPORT_IS_DISABLED: 344,
  INTO_OUTFILE_NOT_ALLOWED: 358,
  SESSION_NOT_FOUND: 372,
  SESSION_IS_LOCKED: 373,
  INVALID_SESSION_TIMEOUT: 374,
  ACCESS_ENTITY_ALREADY_EXISTS: 493,
  ACCESS_DENIED: 497,
  AUTHENTICATION_FAILED: 516,
} as const;

/** A failure with ClickHouse's number; its message is what a client of ClickHouse expects to read. */
export class Failure extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "Failure";
    this.code = code;
  }
}

/** @param message a sentence with its full stop */
export function failure(name: keyof typeof codes, message: string): Failure {
  return new Failure(codes[name], `Code: ${codes[name]}. DB::Exception: ${message} (${name})`);
}

/** What the engine threw, as a failure. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) {
    return error;
  }
  const message = (error instanceof Error ? error.message : String(error)).trim();
  const found = /Code: (\d+)\. /.exec(message);
  if (found) {
    return new Failure(Number(found[1]), message.slice(found.index));
  }
  // LOGICAL_ERROR: whatever it is, it is no client's fault.
  return new Failure(49, `Code: 49. DB::Exception: ${message} (LOGICAL_ERROR)`);
}

/** The statuses of ClickHouse's HTTP interface that are not 500, with the numbers of the errors that have them. */
const statuses: readonly (readonly [status: number, codes: readonly number[]])[] = [
  // What was sent cannot be understood.
  [
    400,
    [
      6, 8, 15, 25, 26, 27, 36, 37, 38, 41, 44, 53, 62, 72, 117, 123, 167, 168, 223, 321, 376, 427, 441, 675,
      676,
    ],
  ],
  [401, [194]],
  // Users, passwords and rights.
  [403, [192, 193, 497, 512, 516]],
  // What it names is unknown.
  [404, [46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 152, 336, 511]],
  [408, [159]],
  [411, [381]],
  [413, [229]],
  [501, [48]],
  [503, [76, 209, 439]],
];

/** The status of an answer that reports a failure. */
export function statusOf({ code }: Failure): number {
  return statuses.find(([, codes]) => codes.includes(code))?.[0] ?? 500;
}
