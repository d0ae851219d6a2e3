/** The text of mails. Pure. Whatever comes from a tenant is in lines of plain text, and in no header but the subject. */

import { CONFIRMATION_EVENT } from "@slipway/ledger";
import { z } from "zod";

export interface MailText {
  subject: string;
  text: string;
}

/** Longest value of an event that a mail shows. */
const VALUE_MAX_LENGTH = 1_024;
const SUBJECT_MAX_LENGTH = 150;
/** Controls, and what changes the direction or the lines of the text around it. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]+/gu;

const printable = (text: string): string => text.replace(UNPRINTABLE, " ").trim();

/** What a mail that asks for a confirmation says: of the organization its name alone. */
export function confirmationMail(organizationName: string, code: string, unsubscribeUrl: string): MailText {
  const organization = printable(organizationName).slice(0, 64);
  return {
    subject: "Confirm notifications by e-mail",
    text: lines([
      `The organization "${organization}" on Slipway has asked to send notifications to this address.`,
      "",
      `Code: ${code}`,
      "",
      "Give it to the person who asked you for it; it is valid for a day. If you expect no such mail, do nothing: without the code no notification is sent.",
      "",
      `End notifications from this organization: ${unsubscribeUrl}`,
    ]),
  };
}

const payloadSchema = z.object({
  type: z.string(),
  timestamp: z.string(),
  data: z.record(z.string(), z.unknown()),
});

/** What a mail about an event says. @throws Error when the payload is not one of an event */
export function eventMail(payload: string, organizationName: string, unsubscribeUrl: string): MailText {
  const { type, timestamp, data } = payloadSchema.parse(JSON.parse(payload));
  const about = typeof data.project_id === "string" ? `${type}: ${data.project_id}` : type;
  const values = Object.entries(data).map(([key, value]) => `${key}: ${shown(value)}`);
  return {
    subject: printable(`[Slipway] ${about}`).slice(0, SUBJECT_MAX_LENGTH),
    text: lines([
      `${type} at ${timestamp}`,
      "",
      ...values.map(printable),
      "",
      "-- ",
      `Organization: ${printable(organizationName)}`,
      `End notifications from this organization: ${unsubscribeUrl}`,
    ]),
  };
}

function shown(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.length > VALUE_MAX_LENGTH ? `${text.slice(0, VALUE_MAX_LENGTH).toWellFormed()}…` : text;
}

const lines = (all: readonly string[]): string => `${all.join("\n")}\n`;

/** What a leased mail says. Undefined for a confirmation that would confirm nothing any more. */
export function mailText(
  { eventType, payload, mail }: { eventType: string; payload: string; mail: MailContext },
  unsubscribeUrl: string,
): MailText | undefined {
  if (eventType !== CONFIRMATION_EVENT) {
    return eventMail(payload, mail.organizationName, unsubscribeUrl);
  }
  const { confirmationCode: code, organizationName } = mail;
  return code === null ? undefined : confirmationMail(organizationName, code, unsubscribeUrl);
}

/** What is known of the recipient's organization. */
interface MailContext {
  organizationName: string;
  confirmationCode: string | null;
}
