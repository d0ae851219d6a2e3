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
  /** Milliseconds after which the receiver wants to be tried again. */
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
