/** A broken rule of a request: the field's dotted path, and what is wrong with it. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
  /** Where the rule has a code of its own. */
  readonly code?: string;
}

/** Codes of answers that are not the API's failure envelope: of a proxy, of another server. */
export const UNKNOWN_CODE = "UNKNOWN_FAILURE";

/** An answer of the API that is not a success. `code` is stable: branch on it, not on the message. */
export class SlipwayError extends Error {
  override readonly name = "SlipwayError";
  /** HTTP status. */
  readonly status: number;
  /** The envelope's code, for example `PROJECT_NOT_FOUND`; {@link UNKNOWN_CODE} of an answer without one. */
  readonly code: string;
  /** What else the envelope has: `errors`, `limit`, `required` and others. */
  readonly details: Readonly<Record<string, unknown>>;
  /** Seconds after which it is worth trying again, where the server says so. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    options: { details?: Record<string, unknown>; retryAfterSeconds?: number } = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = options.details ?? {};
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  /** Every broken rule of a request that was refused for several. */
  get errors(): readonly FieldError[] {
    const { errors } = this.details;
    return Array.isArray(errors) ? (errors as FieldError[]) : [];
  }
}

/** Characters of an answer without an envelope that its message shows. */
const LONGEST_EXCERPT = 200;

/**
 * An answer's body as an error. Pure.
 * @param text the body, whatever it is
 * @param retryAfterSeconds what the header says
 */
export function toSlipwayError(
  status: number,
  text: string,
  retryAfterSeconds: number | undefined = undefined,
): SlipwayError {
  const envelope = readEnvelope(text);
  if (envelope === undefined) {
    const excerpt = text.trim().slice(0, LONGEST_EXCERPT);
    const message = `the server answered ${status} without a failure of the API${excerpt === "" ? "" : `: ${excerpt}`}`;
    return new SlipwayError(status, UNKNOWN_CODE, message, { retryAfterSeconds });
  }
  const { status: _, code, message, ...details } = envelope;
  return new SlipwayError(status, code, message, { details, retryAfterSeconds });
}

function readEnvelope(text: string): { status: unknown; code: string; message: string } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const { code, message } = (value ?? {}) as Record<string, unknown>;
    return typeof code === "string" && typeof message === "string"
      ? (value as { status: unknown; code: string; message: string })
      : undefined;
  } catch {
    return undefined;
  }
}
