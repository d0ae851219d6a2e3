/** Sends one delivery to a recipient of e-mail, by the platform's SMTP server. */

import { getCACertificates } from "node:tls";
import { CONFIRMATION_EVENT, type LeasedMail, type LeasedWebhookDelivery } from "@slipway/ledger";
import { createTransport } from "nodemailer";
import { mailText } from "./mail.ts";
import type { SentAttempt } from "./send.ts";

/** The server that takes mails. */
export interface SmtpSettings {
  host: string;
  port: number;
  /** `starttls` and `implicit` send nothing, no password either, over a connection that is not encrypted and verified. */
  tls: "starttls" | "implicit" | "none";
  user?: string;
  password?: string;
  /** The address that mails are from. */
  from: string;
  /** Under which recipients reach the API, without a slash at its end. */
  publicUrl: string;
}

/** Connections of one process: as many as mails are sent at a time by all. */
export const SMTP_CONNECTIONS = 8;
const CONNECT_TIMEOUT_MS = 10_000;
const SILENCE_TIMEOUT_MS = 20_000;
/** Milliseconds for one mail, less than a lease. */
export const MAIL_TIMEOUT_MS = 45_000;

export interface MailSender {
  /** Never rejects, unless the signal aborts. */
  send(leased: LeasedWebhookDelivery, mail: LeasedMail, signal: AbortSignal): Promise<SentAttempt>;
  close(): void;
}

/**
 * The sender of a process.
 * @param ca PEM certificates of authorities that are trusted beside the public ones
 */
export function mailSender(
  settings: SmtpSettings,
  { ca, timeoutMs = MAIL_TIMEOUT_MS }: { ca?: string; timeoutMs?: number } = {},
): MailSender {
  const { host, port, tls, user, password, from, publicUrl } = settings;
  const transport = createTransport({
    pool: true,
    maxConnections: SMTP_CONNECTIONS,
    maxMessages: 100,
    // The queue of deliveries is the ledger's.
    maxRequeues: 0,
    idleTimeout: 30_000,
    host,
    port,
    secure: tls === "implicit",
    requireTLS: tls === "starttls",
    ignoreTLS: tls === "none",
    ...(user === undefined ? {} : { auth: { user, pass: password ?? "" } }),
    ...(ca === undefined ? {} : { tls: { ca: [...getCACertificates("default"), ca] } }),
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const domain = from.slice(from.lastIndexOf("@") + 1);
  return {
    close: () => transport.close(),
    send: async (leased, mail, signal) => {
      if (!mail.isConfirmed && leased.eventType !== CONFIRMATION_EVENT) {
        return { outcome: "withheld", error: "recipient_unconfirmed", isFinal: true, isPlatformFault: true };
      }
      const unsubscribeUrl = `${publicUrl}/v1/email/unsubscribe/${mail.unsubscribeToken}`;
      const content = mailText({ ...leased, mail }, unsubscribeUrl);
      if (content === undefined) {
        return { outcome: "withheld", error: "confirmation_expired", isFinal: true, isPlatformFault: true };
      }
      try {
        await transport.sendMail({
          ...content,
          from,
          // An object is no list of addresses, whatever is in it.
          to: { name: "", address: mail.address },
          messageId: `<${leased.eventId}.${leased.webhookId}@${domain}>`,
          headers: {
            "Auto-Submitted": "auto-generated",
            "List-Unsubscribe": `<${unsubscribeUrl}>`,
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
          },
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
        });
        return { outcome: "succeeded" };
      } catch (error) {
        signal.throwIfAborted();
        return failureOf(error);
      }
    },
  };
}

/** What nodemailer's errors say; their messages may repeat what the server says of itself, and are not kept. */
interface SmtpError {
  name?: unknown;
  code?: unknown;
  response?: unknown;
  responseCode?: unknown;
  command?: unknown;
}

/** Commands whose replies are about the one mail. */
const MAIL_COMMANDS = ["MAIL FROM", "RCPT TO", "DATA"];
/** Enhanced codes of RFC 3463 that are about the recipient's address or mailbox; 7 and 8 of the first are about the sender's. */
const OF_RECIPIENT = /^5\.(?:1\.(?![78]$)|2\.)\d+$/;
/** Of a server without enhanced codes: no such mailbox, or one elsewhere. */
const NO_MAILBOX = [550, 551, 553];

function failureOf(error: unknown): SentAttempt {
  const { name, code, response, responseCode, command } = (error ?? {}) as SmtpError;
  if (typeof responseCode === "number" && MAIL_COMMANDS.some((one) => one === command)) {
    // Whatever is not certainly the recipient's fault is the server's or the sender's, and may end.
    return command === "RCPT TO" && isOfRecipient(responseCode, response)
      ? { outcome: "recipient_refused", responseCode, error: "recipient_refused", isFinal: true }
      : { outcome: "refused", responseCode, error: "message_refused", isPlatformFault: true };
  }
  const isTimeout = code === "ETIMEDOUT" || name === "TimeoutError" || name === "AbortError";
  const word =
    code === "EAUTH"
      ? "smtp_login_refused"
      : code === "ETLS"
        ? "smtp_not_encrypted"
        : isTimeout
          ? "timeout"
          : "unreachable";
  return { outcome: "unreachable", error: word, isPlatformFault: true };
}

/** Whether a reply to RCPT says that there is no such recipient, for good. */
function isOfRecipient(responseCode: number, response: unknown): boolean {
  const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})(?!\S)/.exec(String(response))?.[1];
  return enhanced === undefined
    ? NO_MAILBOX.includes(responseCode)
    : responseCode >= 500 && OF_RECIPIENT.test(enhanced);
}
