import { once } from "node:events";
import { createServer } from "node:net";
import { eventually } from "./eventually.ts";

/** How long another file may have it, in milliseconds: as long as the longest takes. */
const WITHIN_MS = 900_000;

/**
 * What only one file may use at a time: builds or backups as a whole, a collector (one that is killed again and again is restarted
 * after 10, 20, 40 s), and what the platform's parts are set to.
 */
type Exclusive = "builds" | "backups" | "collector" | "settings";

/**
 * Waits until no other process of this machine has any of what is named, and acquires all of it, in the order of the names: an
 * abstract Unix socket each, which the kernel removes when its process ends, however that happens.
 * @returns releases it
 */
export async function acquireExclusive(...names: Exclusive[]): Promise<() => void> {
  const releases: (() => void)[] = [];
  const release = (): void => {
    for (const one of releases) {
      one();
    }
  };
  try {
    for (const name of [...names].sort()) {
      releases.push(await acquire(name));
    }
  } catch (error) {
    release();
    throw error;
  }
  return release;
}

const acquire = (name: Exclusive): Promise<() => void> =>
  eventually(
    async () => {
      const server = createServer();
      server.listen(`\0slipway-test-${name}`);
      await once(server, "listening");
      server.unref();
      return () => server.close();
    },
    { within: WITHIN_MS },
  );
