import type { Server } from "node:http";
import { BlockList, isIP, isIPv6, type Socket } from "node:net";
import { ConcurrencyLimiter } from "@slipway/process";
import type { FastifyInstance } from "fastify";
import { failures } from "../errors/catalog.ts";
import { addressGroup, onceOver } from "./exchange.ts";
import type { LoadShedder } from "./load-shedder.ts";

export interface ClientLimits {
  /** Concurrent requests: of the process, and of one address. */
  requests: number;
  requestsPerAddress: number;
  /** Connections: of the process, and of one address that is no trusted proxy. */
  connections: number;
  connectionsPerAddress: number;
}

export const CLIENT_LIMITS: ClientLimits = {
  requests: 4_096,
  requestsPerAddress: 512,
  connections: 8_192,
  connectionsPerAddress: 1_024,
};

/** Limits one client's concurrent requests, while only its address is known; sheds new requests while memory is short. */
export function installClientLimits(
  app: FastifyInstance,
  limits: ClientLimits,
  trustedProxies: readonly string[],
  shedder: Pick<LoadShedder, "isOverloaded"> | undefined,
): void {
  boundConnections(app.server, limits, trustedProxies);
  const refuse = failures.serverBusy;
  const underWay = new ConcurrencyLimiter({
    total: limits.requests,
    perKey: limits.requestsPerAddress,
    refuse,
  });
  app.addHook("onRequest", (request, reply, done) => {
    if (shedder?.isOverloaded) {
      return done(refuse());
    }
    const release = underWay.tryAcquire(addressGroup(request.ip));
    if (!release) {
      return done(refuse());
    }
    onceOver(request, reply, release);
    done();
  });
}

/** A proxy's connections are those of all its clients: they are bounded for the process alone. */
function boundConnections(server: Server, limits: ClientLimits, trustedProxies: readonly string[]): void {
  const { connections, connectionsPerAddress } = limits;
  server.maxConnections = connections;
  const trusted = blockList(trustedProxies);
  const open = new ConcurrencyLimiter({ perKey: connectionsPerAddress, refuse: failures.serverBusy });
  server.on("connection", (socket: Socket) => {
    // Each request of a connection listens for its end, and there may be many behind one another.
    socket.setMaxListeners(0);
    const address = socket.remoteAddress ?? "";
    if (trusted.check(address, isIPv6(address) ? "ipv6" : "ipv4")) {
      return;
    }
    const release = open.tryAcquire(addressGroup(address));
    if (release) {
      socket.once("close", release);
    } else {
      socket.destroy();
    }
  });
}

/** @param ranges addresses and CIDRs */
function blockList(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", prefix] = range.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (prefix !== undefined) {
      list.addSubnet(address, Number(prefix), family);
    } else if (isIP(address)) {
      list.addAddress(address, family);
    }
  }
  return list;
}
