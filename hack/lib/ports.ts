import { once } from "node:events";
import { createServer } from "node:net";

// Below the ports that the kernel assigns automatically: no other connection uses one that was found free.
const LOWEST = 12_000;
const HIGHEST = 29_999;
/** Ports that may be taken before the search ends. */
const MISSES = 200;

/**
 * Ports of 127.0.0.1 that were free a moment ago; all different, and chosen at random, so that processes that search
 * at the same time find others.
 * @throws Error when there are none to be had
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let tries = 0; ports.size < count; tries += 1) {
    if (tries - ports.size > MISSES) {
      throw new Error("no free ports");
    }
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1));
    if (!ports.has(port) && (await isFree(port))) {
      ports.add(port);
    }
  }
  return [...ports];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
