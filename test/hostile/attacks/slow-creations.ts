import type { Attack } from "../attack.ts";
import { closed, connections, open } from "../connections.ts";

const ANNOUNCED = 1_700_000;

export const slowCreations: Attack = {
  name: "slow-creations",
  about: "26 creations of one organization whose 1.7 MB come a few bytes a second",
  seconds: 12,
  isShort: true,
  expected: ["400", "408", "429", "503", closed, open],
  prepare: async ({ url, organizations: [{ api_key }] }) => ({
    run: (signal) =>
      connections(
        {
          url,
          count: 26,
          perSecond: 100,
          first: () => [
            `POST /v1/project HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: ${api_key}\r\nContent-Type: application/json\r\nContent-Length: ${ANNOUNCED}\r\n\r\n`,
          ],
          drip: { everyMs: 500, bytes: "          " },
        },
        signal,
      ),
  }),
};
