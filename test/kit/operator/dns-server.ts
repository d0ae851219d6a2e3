/** A name server on loopback, for tests of lookups. */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { decode, encode, type Packet } from "dns-packet";

export interface TestDnsServer {
  /** `ip:port`, as a resolver requires it. */
  address: string;
  /** TXT records by name, each as its strings; a name that is missing does not exist, an empty list has no such record. */
  records: Map<string, string[][]>;
  /** Names that were queried, in order. */
  queries: string[];
  /** While set, it answers nothing at all (`silent`), or that it failed. */
  failure?: "silent" | "servfail";
  stop(): Promise<void>;
}

const RCODE = { servfail: 2, nxdomain: 3 };

/** Starts it on a free port of 127.0.0.1, UDP alone. */
export async function startDnsServer(): Promise<TestDnsServer> {
  const socket = createSocket("udp4");
  const server: TestDnsServer = {
    address: "",
    records: new Map(),
    queries: [],
    stop: async () => {
      socket.close();
      await once(socket, "close");
    },
  };
  socket.on("message", (message, { port, address }) => {
    const query = decode(message);
    const name = query.questions?.[0]?.name ?? "";
    server.queries.push(name);
    if (server.failure !== "silent") {
      socket.send(encode(answerTo(query, server.records.get(name), server.failure)), port, address);
    }
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  server.address = `127.0.0.1:${socket.address().port}`;
  return server;
}

function answerTo(query: Packet, records: string[][] | undefined, failure: "servfail" | undefined): Packet {
  const rcode = failure ? RCODE.servfail : records ? 0 : RCODE.nxdomain;
  const name = query.questions?.[0]?.name ?? "";
  return {
    type: "response",
    id: query.id,
    // Recursion is available, and requested: what a stub resolver expects.
    flags: 0x0180 | rcode,
    questions: query.questions,
    answers: rcode === 0 ? (records ?? []).map((data) => ({ type: "TXT" as const, name, ttl: 0, data })) : [],
  };
}
