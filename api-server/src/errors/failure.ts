/** One broken rule of a request. `field` is the dotted path in the body, or the name of the header or parameter. */
export interface FieldError {
  field: string;
  message: string;
  /** Set when the rule has a code of its own in the specification. */
  code?: string;
}

/**
 * An answer that is not a success. Made only by the factories of `catalog.ts`, rendered only by `handler.ts`.
 * `message` and `extra` reach the client: they hold nothing internal.
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
