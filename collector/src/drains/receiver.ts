import type { DrainedLine } from "@slipway/analytics";
import type { LogDrainReason } from "@slipway/crds";

/** A line, and whose it is. */
export interface OutgoingLine extends DrainedLine {
  organization: string;
  /** Name that people gave the project; its id where the project is deleted. */
  projectName: string;
}

/** Where lines of one drain go. */
export interface Receiver {
  /**
   * Sends lines, in their order; resolves once the receiver has them.
   * @returns how many of them it refused for good
   * @throws DeliveryError when all of them are to be sent again
   */
  send(lines: readonly OutgoingLine[], signal: AbortSignal): Promise<{ refused: number }>;
  /** Ends its connections. */
  close(): void;
}

/** Why a delivery failed, in words of ours: those of sockets contain addresses, which would show a tenant the platform's network. */
export class DeliveryError extends Error {
  override readonly name = "DeliveryError";
  readonly reason: LogDrainReason;
  /** Milliseconds after which the receiver wants to be asked again. */
  readonly retryAfterMs: number | undefined;

  constructor(
    reason: LogDrainReason,
    message: string,
    options: { cause?: unknown; retryAfterMs?: number } = {},
  ) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
  }
}

const UNTRUSTED =
  /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|PATH_LENGTH)/;

/** The failure of a connection. Pure. */
export function connectionFailure(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) {
    return error;
  }
  const { code, name } = error as NodeJS.ErrnoException;
  if (typeof code === "string" && UNTRUSTED.test(code)) {
    return new DeliveryError("CertificateUntrusted", `no connection over TLS is made (${code})`, {
      cause: error,
    });
  }
  const isLate = name === "TimeoutError" || name === "AbortError" || code === "ETIMEDOUT";
  const message = isLate ? "the receiver does not answer in time" : "the receiver cannot be reached";
  return new DeliveryError("ReceiverUnavailable", message, { cause: error });
}
