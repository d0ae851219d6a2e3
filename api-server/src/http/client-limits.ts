import type { Server } from "node:http";
import { BlockList, isIP, isIPv6, type Socket } from "node:net";
import { getHeapStatistics } from "node:v8";
import { ConcurrencyLimiter } from "@slipway/process";
import type { FastifyInstance } from "fastify";
import { failures } from "../errors/catalog.ts";
import { addressGroup } from "./exchange.ts";
import { RequestsUnderWay } from "./requests-under-way.ts";

/** Limits the connections and concurrent requests of clients, and sheds load while memory is short. */

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
  const underWay = new RequestsUnderWay(limits);
  app.addHook("onRequest", (request, _reply, done) => {
    const isAdmitted = !shedder?.isOverloaded && underWay.tryBegin(request.raw, addressGroup(request.ip));
    done(isAdmitted ? undefined : failures.serverBusy());
  });
  app.addHook("onResponse", (request, _reply, done) => {
    underWay.end(request.raw);
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

/** How much of its memory the process uses, in parts of what it may. */
export interface MemoryUse {
  /** V8's heap. */
  heap: number;
  /** All of the process, of the container's limit; 0 where there is none. */
  process: number;
}

/** Above it new requests are refused: those under way need the rest. */
const FULL: MemoryUse = { heap: 0.92, process: 0.9 };
/** Milliseconds between reads of the memory in use. */
const SAMPLE_MS = 250;

/**
 * Decides when the process has so little memory left that new requests are refused (503, with Retry-After) rather than all of them lost
 * with it. One sample may be garbage that is not collected yet: it takes two in a row.
 */
export class LoadShedder {
  readonly #read: () => MemoryUse;
  readonly #timer: NodeJS.Timeout;
  #full = 0;

  constructor(read: () => MemoryUse = memoryUse, sampleMs = SAMPLE_MS) {
    this.#read = read;
    this.#timer = setInterval(() => this.sample(), sampleMs);
    this.#timer.unref();
  }

  get isOverloaded(): boolean {
    return this.#full >= 2;
  }

  /** Samples the memory now. */
  sample(): void {
    const { heap, process } = this.#read();
    this.#full = heap > FULL.heap || process > FULL.process ? this.#full + 1 : 0;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

function memoryUse(): MemoryUse {
  const { used_heap_size: used, heap_size_limit: most } = getHeapStatistics();
  // 0, or more than any machine has, where the control group sets no limit.
  const limit = process.constrainedMemory();
  const isLimited = limit > 0 && limit < Number.MAX_SAFE_INTEGER;
  return { heap: used / most, process: isLimited ? process.memoryUsage.rss() / limit : 0 };
}
