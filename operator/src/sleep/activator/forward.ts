/** Forwards a request to an instance over a connection that is open, and its answer back, as streams. */

import {
  type ClientRequest,
  type IncomingMessage,
  request,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { endToEnd, requestHeaders, upgradeHeaders } from "./headers.ts";

/** How long a connection may be without a byte. */
const IDLE_MS = 300_000;
/** Longest time of a connection of another protocol: clients connect again, to an instance without the activator. */
const UPGRADED_MS = 600_000;
/** Bytes of the headers of a request, and of an answer: of many in hand they are in memory. */
export const MAX_HEADER_BYTES = 64 * 1024;

/** @param isLast the client's connection ends with the answer. @throws Error when the instance, or the client, has ended the exchange before its end */
export async function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  socket: Socket,
  isLast: () => boolean,
): Promise<void> {
  const outgoing = requestOver(socket, incoming, requestHeaders(incoming));
  response.once("close", () => outgoing.destroy());
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once("response", resolve);
    outgoing.once("error", reject);
  });
  // An instance may answer before it has read the body, or without reading it.
  const sent = pipeline(incoming, outgoing).catch(() => {});
  const answer = await answered;
  outgoing.on("error", () => answer.destroy());
  const headers = [...endToEnd(answer), ...(isLast() ? ["connection", "close"] : [])];
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, headers);
  await pipeline(answer, response);
  outgoing.destroy();
  await sent;
}

/** The same request over a connection to an instance, which ends when it is silent for too long. */
function requestOver(socket: Socket, { method, url }: IncomingMessage, headers: string[]): ClientRequest {
  socket.setTimeout(IDLE_MS, () => socket.destroy(new Error("the instance is silent")));
  return request({
    createConnection: () => socket,
    ...{ method, path: url, headers },
    setHost: false,
    maxHeaderSize: MAX_HEADER_BYTES,
  });
}

/**
 * Forwards a request for another protocol, and then bytes in both directions until one side ends, both are silent, or it has lasted for long.
 * @param onAnswer called before anything is written to the client
 */
export async function forwardUpgrade(
  incoming: IncomingMessage,
  client: Duplex,
  head: Buffer,
  socket: Socket,
  onAnswer: () => void,
): Promise<void> {
  const outgoing = requestOver(socket, incoming, upgradeHeaders(incoming));
  client.once("close", () => outgoing.destroy());
  const answered = new Promise<{ answer: IncomingMessage; rest: Buffer; isUpgraded: boolean }>(
    (resolve, reject) => {
      outgoing.once("upgrade", (answer, _socket, rest) => resolve({ answer, rest, isUpgraded: true }));
      outgoing.once("response", (answer) => resolve({ answer, rest: Buffer.alloc(0), isUpgraded: false }));
      outgoing.once("error", reject);
    },
  );
  outgoing.end();
  const { answer, rest, isUpgraded } = await answered;
  const headers = isUpgraded
    ? [...endToEnd(answer), "connection", "Upgrade", "upgrade", answer.headers.upgrade ?? ""]
    : [...endToEnd(answer), "connection", "close"];
  onAnswer();
  client.write(headOf(answer, headers));
  if (!isUpgraded) {
    await pipeline(answer, client);
    return;
  }
  client.write(rest);
  socket.write(head);
  const ending = setTimeout(() => client.destroy(), UPGRADED_MS);
  await Promise.race([pipeline(socket, client, socket), onceClosed(client)]).finally(() =>
    clearTimeout(ending),
  );
}

const onceClosed = (stream: Duplex): Promise<void> =>
  new Promise((resolve) => stream.once("close", () => resolve()));

function headOf({ statusCode = 502, statusMessage }: IncomingMessage, headers: readonly string[]): string {
  const lines = [`HTTP/1.1 ${statusCode} ${statusMessage ?? STATUS_CODES[statusCode] ?? ""}`];
  for (let index = 0; index + 1 < headers.length; index += 2) {
    lines.push(`${headers[index]}: ${headers[index + 1]}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n`;
}
