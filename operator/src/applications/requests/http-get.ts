import { request } from "node:http";

/**
 * What a process of the platform answers, over a connection of its own.
 * @throws Error for an answer other than 200, one that is longer, and none before the signal aborts
 */
export function httpGet(url: string, options: { limitBytes: number; signal: AbortSignal }): Promise<string> {
  const { limitBytes, signal } = options;
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent: false, signal }, (response) => {
      if (response.statusCode !== 200) {
        response.destroy();
        reject(new Error(`answered ${response.statusCode}`));
        return;
      }
      const parts: Buffer[] = [];
      let bytes = 0;
      response.on("data", (part: Buffer) => {
        bytes += part.length;
        if (bytes > limitBytes) {
          response.destroy(new Error(`answered more than ${limitBytes} bytes`));
          return;
        }
        parts.push(part);
      });
      response.on("error", reject);
      response.on("end", () => resolve(Buffer.concat(parts).toString("utf8")));
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}
