import type { Attack } from "../attack.ts";
import { closed, connections, open } from "../connections.ts";

/** The largest body of a route that does not say otherwise is 1,048,575 bytes: one less is sent. */
const ANNOUNCED = 1_048_575;
const filler = Buffer.alloc(ANNOUNCED - 1, " ");

export const stalledBodies: Attack = {
  name: "stalled-bodies",
  about: "900 anonymous connections that send all but the last byte of a body to a route that there is not",
  seconds: 12,
  isShort: true,
  // The ingress takes 900 MB in first: not each of them is answered in time.
  expected: ["404", "408", "413", "429", "503", closed, open],
  prepare: async ({ url }) => ({
    run: (signal) =>
      connections(
        {
          url,
          count: 900,
          perSecond: 300,
          first: () => [
            `POST /nope HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${ANNOUNCED}\r\n\r\n`,
            filler,
          ],
        },
        signal,
      ),
  }),
};
