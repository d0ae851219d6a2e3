import { z } from "zod";
import { CURRENCY_CODE, claimedInvoice, REFERENCE, type ReadEvent } from "./read-event.ts";

/** Reads events of payments in Slipway's own form, which any bank's or provider's program can send. Pure. */

export const genericTypes = ["payment.received", "payment.reversed"] as const;

const EARLIEST = Date.UTC(2000);

/** The body of the generic form. */
export const genericBody = z.looseObject({
  type: z.enum(genericTypes).describe("`payment.reversed`: the payment of this reference was given back."),
  timestamp: z.iso
    .datetime({ offset: true })
    .refine((text) => Date.parse(text) >= EARLIEST, { message: "must be of this century" })
    .describe("When it happened; when it is received unless given.")
    .optional(),
  data: z.looseObject({
    invoice: z.string().min(1).max(64).describe("The invoice's number."),
    reference: z.string().regex(REFERENCE).describe("Names the payment."),
    currency: z.string().regex(CURRENCY_CODE).describe("ISO 4217."),
    amount: z
      .string()
      .regex(/^[1-9][0-9]{0,14}$/)
      .describe(
        "Hundredths of the currency, in digits. Exactly what is open of the invoice, or what was paid.",
      ),
  }),
});

/**
 * What an event says of an invoice. Events of other types are ignored.
 * @param eventId of the headers that are signed
 */
export function readGenericEvent(body: unknown, eventId: string, now: Date): ReadEvent {
  const type = (body as { type?: unknown } | null)?.type;
  if (typeof type === "string" && !genericTypes.some((known) => known === type)) {
    return { kind: "ignored" };
  }
  const read = genericBody.safeParse(body);
  if (!read.success) {
    const fields = [...new Set(read.error.issues.map(({ path }) => path.join(".") || "body"))];
    return { kind: "unreadable", reason: `the event lacks a member, or it is wrong: ${fields.join(", ")}` };
  }
  const { type: eventType, timestamp, data } = read.data;
  return {
    kind: "event",
    event: {
      provider: "generic",
      eventId,
      eventType,
      kind: eventType === "payment.received" ? "payment" : "refund",
      invoice: claimedInvoice(data.invoice),
      reference: data.reference,
      currency: data.currency.toLowerCase(),
      amount: data.amount,
      occurredAt: timestamp === undefined ? now : new Date(timestamp),
    },
  };
}
