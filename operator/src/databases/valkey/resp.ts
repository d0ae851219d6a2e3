/** Valkey's protocol (RESP), as far as the operator speaks it without the client. */

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** Where a server or a Sentinel is. */
export interface Address {
  /** Address of the pod. */
  host: string;
  port: number;
  /** Name in the server's certificate. */
  serverName: string;
  /** PEM of the databases' authority; undefined speaks without TLS, as only tests do. */
  ca: string | undefined;
}

/** Event of a socket that can be written to. */
export const opened = ({ ca }: Address) => (ca === undefined ? "connect" : "secureConnect");

/** Opens a connection. A caller that waits for it has its own error handler; without one, errors only close it. */
export function openSocket({ host, port, ca, serverName }: Address): Socket {
  const socket =
    ca === undefined ? connectTcp({ host, port }) : connectTls({ host, port, ca, servername: serverName });
  socket.on("error", () => undefined);
  return socket;
}

/** A command: an array of strings with their lengths in bytes. */
export function command(...words: string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
}
