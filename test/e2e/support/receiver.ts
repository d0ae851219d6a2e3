/** A receiver of webhooks on this machine, which verifies what it gets with the library of Standard Webhooks. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:https";
import { dirname } from "node:path";
import { Webhook } from "standardwebhooks";
import { ensureAuthority, ensureCertificate } from "../../../hack/cluster/certificates.ts";
import { stack } from "./stack.ts";

/** The stack's operators may connect to it (hack/stack/chart.ts). */
const PORT = 5_010;

export interface ReceivedEvent {
  readonly id: string;
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Receiver {
  readonly url: string;
  /** Events whose signature is right, as they came: one may come twice. */
  readonly events: readonly ReceivedEvent[];
  /** Requests whose signature is not. */
  readonly refused: readonly string[];
  /** What it is to verify with from now on. */
  trust(secret: string): void;
  /** What it answers from now on. */
  answer(status: number): void;
  close(): Promise<void>;
}

/** Starts it, certified by the stack's authority. */
export async function startReceiver(): Promise<Receiver> {
  const { hostname } = new URL(stack.git.url);
  const folder = dirname(stack.git.caFile);
  const authority = await ensureAuthority(folder, "ca");
  const pair = await ensureCertificate(folder, "webhook-receiver", authority, {
    commonName: "webhook-receiver",
    altNames: [`IP:${hostname}`],
  });
  const [cert, key] = await Promise.all([pair.cert, pair.key].map((file) => readFile(file)));
  const events: ReceivedEvent[] = [];
  const refused: string[] = [];
  let webhook: Webhook | undefined;
  let status = 204;
  const server = createServer({ cert, key }, (request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const headers = request.headers as Record<string, string>;
      try {
        if (webhook === undefined) {
          throw new Error("nothing is to be received yet");
        }
        const { type, data } = webhook.verify(body, headers) as Omit<ReceivedEvent, "id">;
        events.push({ id: headers["webhook-id"] ?? "", type, data });
      } catch (error) {
        refused.push(String(error));
      }
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(PORT, "0.0.0.0", resolve));
  return {
    url: `https://${hostname}:${PORT}/`,
    events,
    refused,
    trust: (secret) => {
      webhook = new Webhook(secret);
    },
    answer: (code) => {
      status = code;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
