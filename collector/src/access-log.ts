import { type AccessEvent, MinuteBounds } from "@slipway/analytics";
import type { Clock } from "@slipway/process";
import { type AccessLine, parseAccessLine } from "./access-line.ts";
import type { TrustedProxies } from "./client-address.ts";
import type { Input } from "./input.ts";
import { containerFolders, type Source } from "./log-files.ts";
import type { CollectorMetrics } from "./metrics.ts";
import { msUntilGivenUp, type NoOwner } from "./resolver.ts";
import type { Owner } from "./traefik-names.ts";

export interface AccessLogOptions {
  /** The ingress's containers. */
  source: Source;
  resolve: (line: AccessLine) => Owner | NoOwner;
  isTrusted: TrustedProxies;
  metrics: CollectorMetrics;
  clock: Clock;
  /** Of each request that reached an instance: when it ended, by the wall clock. */
  onRequest?: (owner: Owner, endedAt: number) => void;
  /** A part of a log was lost before it was read. */
  onGap?: () => void;
}

/** Bytes of a line: a request's head of a megabyte, and what quoting makes of it. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;

/** The ingress's access log: a line of its standard output is a request. */
export function accessLog(options: AccessLogOptions): Input<AccessEvent> {
  const { source, metrics, isTrusted, resolve, clock, onRequest, onGap } = options;
  // Before events are written: a batch that is sent again has to be the same.
  const bounds = new MinuteBounds();
  return {
    folders: (podLogs) => containerFolders(podLogs, source),
    lines: { maxBytes: MAX_LINE_BYTES },
    idleMs: 100,
    onGap: () => onGap?.(),
    take: ({ content }, _, batch) => {
      if (typeof content === "string") {
        metrics.refused(content);
        return true;
      }
      const line = parseAccessLine(content.toString("utf8"), isTrusted);
      if (typeof line === "string") {
        metrics.refused(line);
        return true;
      }
      const owner = resolve(line);
      if (owner === "unknown" && msUntilGivenUp(line, clock.now()) > 0) {
        return false;
      }
      if (typeof owner === "string") {
        metrics.refused(owner);
        return true;
      }
      batch.add(bounds.bound({ ...owner, ...line.event }));
      // Without a service the ingress answered itself, such as a client whom an access list does not admit.
      if (line.target.service !== "") {
        onRequest?.(owner, line.event.at + line.event.latencyUs / 1000);
      }
      return true;
    },
  };
}
