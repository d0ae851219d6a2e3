/** One broken rule of a request. `field` is the dotted path in the body, or the name of the header or parameter. */
export interface FieldError {
  field: string;
  message: string;
  /** Set when the rule has a code of its own in the specification. */
  code?: string;
}

/**
 * An answer that is not a success. Created only by the factories of `catalog.ts`, rendered only by `handler.ts`.
 * `message` and `extra` reach the client: they contain nothing internal.
 */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly status: number;
  readonly code: string;
  readonly extra: Record<string, unknown>;
  readonly headers: Record<string, string>;

  constructor(
    status: number,
    code: string,
    message: string,
    options: { extra?: Record<string, unknown>; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.status = status;
    this.code = code;
    this.extra = options.extra ?? {};
    this.headers = options.headers ?? {};
  }

  /** The failure envelope. */
  toBody(): Record<string, unknown> {
    return { status: "failed", message: this.message, code: this.code, ...this.extra };
  }
}

/** Broken rules that one answer names at most. */
export const MAX_ERRORS = 100;
/** Characters of a field's name and of a message; both may repeat what the client sent. */
const LONGEST_FIELD = 300;
const LONGEST_MESSAGE = 1_000;

/** The errors as an answer names them: the first ones, long texts cut, and how many more there are. Pure. */
export function shownErrors(errors: readonly FieldError[]): FieldError[] {
  const shown = errors.slice(0, MAX_ERRORS).map((error) => ({
    ...error,
    field: cut(error.field, LONGEST_FIELD),
    message: cut(error.message, LONGEST_MESSAGE),
  }));
  const more = errors.length - shown.length;
  return more === 0 ? shown : [...shown, { field: "errors", message: `and ${more} more` }];
}

const cut = (text: string, longest: number): string =>
  text.length <= longest ? text : `${text.slice(0, longest).toWellFormed()}…`;
