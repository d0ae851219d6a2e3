import { createServer } from "node:net";
import type { LeasedMail, LeasedWebhookDelivery } from "@slipway/ledger";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startSmtpServer, type TestSmtpServer } from "../../../test/kit/servers/smtp.ts";
import { type MailSender, mailSender, type SmtpSettings } from "./send-mail.ts";

/** Mails to a real SMTP server, over TLS. */

let server: TestSmtpServer;
beforeAll(async () => {
  server = await startSmtpServer({ login: { user: "slipway", password: "secret" } });
});
afterAll(() => server.close());

const open: MailSender[] = [];
beforeEach(() => {
  server.mails.length = 0;
});
afterEach(() => {
  server.refuse(undefined);
  for (const sender of open.splice(0)) {
    sender.close();
  }
});

function sender(change: Partial<SmtpSettings> = {}, options: Parameters<typeof mailSender>[1] = {}) {
  const settings: SmtpSettings = {
    host: "localhost",
    port: server.port,
    tls: "starttls",
    user: "slipway",
    password: "secret",
    from: "slipway@example.com",
    publicUrl: "https://api.example.com",
    ...change,
  };
  const made = mailSender(settings, { ca: server.ca, ...options });
  open.push(made);
  return made;
}
const mail: LeasedMail = {
  address: "on-call@example.com",
  isConfirmed: true,
  unsubscribeToken: "t".repeat(32),
  organizationName: "Acme",
  confirmationCode: null,
};
const leased = (data: object = {}): LeasedWebhookDelivery => ({
  sequence: "1",
  organizationId: "acme",
  webhookId: "e1",
  eventId: "evt_1",
  eventType: "run.failed",
  payload: JSON.stringify({
    type: "run.failed",
    timestamp: "2026-11-21T12:00:00.000Z",
    data: { organization_id: "acme", project_id: "pshop", ...data },
  }),
  url: `mailto:${mail.address}`,
  mail,
  lease: 1,
  attempts: 0,
});
const send = (one = sender(), change: Partial<LeasedMail> = {}, data?: object) =>
  one.send(leased(data), { ...mail, ...change }, new AbortController().signal);

describe("a mail", () => {
  // Shows: docs/email.md#mails: `Message-ID`
  // Shows: docs/email.md#mails: `List-Unsubscribe`
  it("is sent over TLS, with the same Message-ID each time, and how to end them", async () => {
    const one = sender();
    expect(await send(one)).toEqual({ outcome: "succeeded" });
    expect(await send(one)).toEqual({ outcome: "succeeded" });
    expect(server.plain()).toBe(0);
    expect(server.mails).toHaveLength(2);
    for (const { to, headers } of server.mails) {
      expect(to).toEqual(["on-call@example.com"]);
      expect(headers).toMatchObject({
        from: "slipway@example.com",
        subject: "[Slipway] run.failed: pshop",
        "message-id": "<evt_1.e1@example.com>",
        "auto-submitted": "auto-generated",
        "list-unsubscribe": `<https://api.example.com/v1/email/unsubscribe/${"t".repeat(32)}>`,
        "list-unsubscribe-post": "List-Unsubscribe=One-Click",
        "content-type": "text/plain; charset=utf-8",
      });
    }
  });

  it("goes to one address, and has no header from an event", async () => {
    await send(sender(), {}, { message: "x\r\nBcc: all@example.com\r\n\r\n.\r\nMAIL FROM:<b@example.com>" });
    expect(server.mails).toHaveLength(1);
    expect(server.mails[0]?.to).toEqual(["on-call@example.com"]);
    expect(server.mails[0]?.headers).not.toHaveProperty("bcc");
  });

  // Shows: docs/email.md#mails: a recipient that the mail server refuses
  it.each([
    [550, "no such user"],
    [551, "not here"],
    [553, "no such mailbox"],
    [550, "5.1.1 no such user"],
    [550, "5.1.10 the domain takes no mail"],
    [552, "5.2.2 the mailbox is full"],
  ])("whose recipient is refused with %i %s is final, and the recipient's", async (code, text) => {
    server.refuse({ code, text, at: "recipient" });
    expect(await send()).toEqual({
      outcome: "recipient_refused",
      error: "recipient_refused",
      responseCode: code,
      isFinal: true,
    });
  });

  // Shows: docs/email.md#mails: a mail that the mail server refuses
  it.each([
    [451, "greylisted"],
    [450, "4.2.0 later"],
    [452, "4.3.1 the disk is full"],
    [530, "authentication required"],
    [535, "the login is over"],
    [552, "too much"],
    [554, "relay access denied"],
    [550, "5.7.1 relaying denied"],
    [550, "5.7.26 the sender is not authenticated"],
    [550, "5.4.5 the quota of a day is used up"],
    [553, "5.1.8 the sender's domain is unknown"],
    [553, "5.1.7 the sender's address is malformed"],
  ])("that is refused with %i %s is tried again, and no recipient's fault", async (code, text) => {
    const refused = {
      outcome: "refused",
      error: "message_refused",
      responseCode: code,
      isPlatformFault: true,
    };
    server.refuse({ code, text, at: "recipient" });
    expect(await send()).toEqual(refused);
    server.refuse({ code, text, at: "message" });
    expect(await send()).toEqual(refused);
  });

  it.each([550, 552, 554, 451])("whose text is refused with %i is no recipient's fault", async (code) => {
    server.refuse({ code, text: "5.1.1 spam", at: "message" });
    expect(await send()).toMatchObject({ error: "message_refused", isPlatformFault: true });
  });

  it("to one that has not confirmed is not sent", async () => {
    expect(await send(sender(), { isConfirmed: false })).toMatchObject({
      outcome: "withheld",
      error: "recipient_unconfirmed",
      isFinal: true,
    });
    expect(server.mails).toEqual([]);
  });
});

describe("a mail server", () => {
  // Shows: docs/email.md#for-operators-of-the-platform: `email.smtp.tls`
  it("that is not verified, or does not encrypt, gets nothing", async () => {
    const untrusted = await send(sender({}, { ca: undefined }));
    expect(untrusted).toMatchObject({ outcome: "unreachable", isPlatformFault: true });
    const bare = await startSmtpServer({ disabledCommands: ["STARTTLS", "AUTH"] });
    try {
      const change = { port: bare.port, user: undefined };
      expect(await send(sender(change))).toMatchObject({ outcome: "unreachable" });
      expect(bare.mails).toEqual([]);
      expect(await send(sender({ ...change, tls: "none" }))).toEqual({ outcome: "succeeded" });
      expect(bare.plain()).toBe(1);
    } finally {
      await bare.close();
    }
  });

  it("is spoken to over TLS from the first byte where settings say so", async () => {
    const implicit = await startSmtpServer({ secure: true });
    try {
      const one = sender({ port: implicit.port, tls: "implicit", user: undefined }, { ca: implicit.ca });
      expect(await send(one)).toEqual({ outcome: "succeeded" });
    } finally {
      await implicit.close();
    }
  });

  it("that takes no login, is silent or away says nothing of the recipient, nor of itself", async () => {
    const wrong = await send(sender({ password: "other" }));
    expect(wrong).toEqual({ outcome: "unreachable", error: "smtp_login_refused", isPlatformFault: true });
    const silent = createServer((socket) => socket.on("error", () => socket.destroy()).unref());
    const port = await new Promise<number>((resolve) => {
      silent.listen(0, "127.0.0.1", () => resolve((silent.address() as { port: number }).port));
    });
    const timeout = await send(sender({ port }, { timeoutMs: 200 }));
    expect(timeout).toEqual({ outcome: "unreachable", error: "timeout", isPlatformFault: true });
    // Those that it has do not end by themselves.
    silent.close();
    expect(await send(sender({ port }))).toEqual({
      outcome: "unreachable",
      error: "unreachable",
      isPlatformFault: true,
    });
  });
});
