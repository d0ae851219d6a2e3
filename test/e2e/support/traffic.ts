import { setTimeout as sleep } from "node:timers/promises";
import { throughIngress } from "./ingress.ts";

/** What a stretch of traffic saw. */
export interface TrafficReport {
  readonly sent: number;
  /** One line per request that was not answered with 200. */
  readonly failures: readonly string[];
  /** Versions of the sample application that answered, in the order of their first answer. */
  readonly versions: readonly string[];
}

/** Requests a second of {@link traffic}, unless it is given another number. */
const RATE = 20;

/**
 * Sends so many requests a second to an application through the ingress, each on its own and without retry, until `stop`.
 * A slow answer does not hold the next request back.
 */
export function traffic(domain: string, path = "/", rate = RATE): { stop: () => Promise<TrafficReport> } {
  const failures: string[] = [];
  const versions: string[] = [];
  const open = new Set<Promise<void>>();
  const start = performance.now();
  let sent = 0;
  let stopped = false;

  const one = async (): Promise<void> => {
    const at = `after ${Math.round(performance.now() - start)} ms`;
    try {
      const { status, text } = await throughIngress(domain, path);
      if (status !== 200) {
        failures.push(`${status} ${at}: ${text.slice(0, 200)}`);
      }
      const version = /"version":"([^"]+)"/.exec(text)?.[1];
      if (version !== undefined && !versions.includes(version)) {
        versions.push(version);
      }
    } catch (error) {
      failures.push(`${(error as Error).message} ${at}`);
    }
  };
  const send = async (): Promise<void> => {
    while (!stopped) {
      const request = one().finally(() => open.delete(request));
      open.add(request);
      sent += 1;
      await sleep(Math.max(0, start + sent * (1000 / rate) - performance.now()));
    }
  };
  const sending = send();
  return {
    stop: async () => {
      stopped = true;
      await sending;
      await Promise.all(open);
      return { sent, failures, versions };
    },
  };
}
