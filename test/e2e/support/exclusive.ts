import { once } from "node:events";
import { createServer } from "node:net";
import { eventually } from "./eventually.ts";

/** How long another file may have it, in milliseconds: as long as the longest takes. */
const WITHIN_MS = 600_000;

/**
 * Waits until no other process of this machine has what is named, and takes it: an abstract Unix socket, which the kernel removes
 * when its process ends, however that happens.
 * @returns releases it
 */
export function acquireExclusive(name: string): Promise<() => void> {
  return eventually(
    async () => {
      const server = createServer();
      server.listen(`\0slipway-test-${name}`);
      await once(server, "listening");
      server.unref();
      return () => server.close();
    },
    { within: WITHIN_MS },
  );
}
