import type { PaymentEvent } from "@slipway/ledger";

/** What a signed webhook of payments says. */
export type ReadEvent =
  | { kind: "event"; event: PaymentEvent }
  /** It is about no invoice of the platform. */
  | { kind: "ignored" }
  /** It is, and lacks what such an event has. */
  | { kind: "unreadable"; reason: string };

/** What names events and payments: visible characters, none that a database refuses. */
export const EVENT_ID = /^[\x21-\x7e]{1,255}$/;
export const REFERENCE = /^[\x21-\x7e]{1,128}$/;
export const CURRENCY_CODE = /^[A-Za-z]{3}$/;

const INVOICE_MAX_LENGTH = 64;

/** An invoice's number as the sender has it, also where there cannot be such an invoice. */
export const claimedInvoice = (text: string): string =>
  text
    .trim()
    .replaceAll(/[^\x20-\x7e]/g, "?")
    .slice(0, INVOICE_MAX_LENGTH);
