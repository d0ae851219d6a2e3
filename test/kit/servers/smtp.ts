/** A real SMTP server on loopback or on an address of the machine, certified by an authority of its own or by one that is given. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import { ensureAuthority, ensureCertificate } from "../../../hack/cluster/certificates.ts";

export interface ReceivedMail {
  to: string[];
  /** Names in lower case; a header that is there twice is a list with both in the raw text alone. */
  headers: Record<string, string>;
  /** As it came. */
  raw: string;
}

export interface TestSmtpServer {
  port: number;
  /** PEM of the authority. */
  ca: string;
  mails: ReceivedMail[];
  /** Sessions so far, by whether they were encrypted when the mail came. */
  plain: () => number;
  /** Answers recipients and mails so from now on; undefined takes them. */
  refuse: (how: Refusal | undefined) => void;
  close: () => Promise<void>;
}

export interface Refusal {
  code: number;
  /** Begins with an enhanced status code where the server has them. */
  text?: string;
  at: "recipient" | "message";
}

export interface SmtpOptions extends Pick<SMTPServerOptions, "secure" | "disabledCommands"> {
  login?: { user: string; password: string };
  /** Folder of the authority, which is made there; without it a new one. */
  folder?: string;
  /** What the certificate is for, as openssl writes it. */
  altNames?: string[];
  address?: string;
  port?: number;
}

/** Starts it. */
export async function startSmtpServer(options: SmtpOptions = {}): Promise<TestSmtpServer> {
  const { login, altNames = ["DNS:localhost"], address = "127.0.0.1", port = 0, folder, ...more } = options;
  const own = folder ?? (await mkdtemp(join(tmpdir(), "slipway-smtp-")));
  const authority = await ensureAuthority(own, folder === undefined ? "authority" : "ca");
  const pair = await ensureCertificate(own, "smtp", authority, { commonName: "smtp", altNames });
  const [cert, key, ca = ""] = await Promise.all(
    [pair.cert, pair.key, authority.cert].map((file) => readFile(file, "utf8")),
  );
  if (folder === undefined) {
    await rm(own, { recursive: true });
  }
  const mails: ReceivedMail[] = [];
  let refusal: Refusal | undefined;
  let plain = 0;
  const refused = (at: Refusal["at"]): Error | null =>
    refusal?.at === at
      ? Object.assign(new Error(refusal.text ?? "refused by the test"), { responseCode: refusal.code })
      : null;
  const server = new SMTPServer({
    logger: false,
    // Texts of refusals have their own enhanced codes.
    hideENHANCEDSTATUSCODES: true,
    // Clients keep their connections.
    closeTimeout: 50,
    cert,
    key,
    authOptional: login === undefined,
    ...more,
    onAuth: ({ username, password }, _session, done) => {
      const isKnown = username === login?.user && password === login?.password;
      done(isKnown ? null : new Error("unknown login"), { user: username });
    },
    onRcptTo: (_address, _session, done) => done(refused("recipient")),
    onData: (stream, session, done) => {
      let raw = "";
      stream.setEncoding("utf8");
      stream.on("data", (chunk: string) => {
        raw += chunk;
      });
      stream.on("end", () => {
        const error = refused("message");
        if (error === null) {
          plain += session.secure ? 0 : 1;
          const to = session.envelope.rcptTo.map((recipient) => recipient.address);
          mails.push({ to, headers: headersOf(raw), raw });
        }
        done(error);
      });
    },
  });
  server.on("error", () => undefined);
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  return {
    port: (server.server.address() as AddressInfo).port,
    ca,
    mails,
    plain: () => plain,
    refuse: (how) => {
      refusal = how;
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function headersOf(raw: string): Record<string, string> {
  const [head = ""] = raw.split("\r\n\r\n");
  const unfolded = head.replaceAll(/\r\n[ \t]/g, " ").split("\r\n");
  return Object.fromEntries(
    unfolded.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
}
