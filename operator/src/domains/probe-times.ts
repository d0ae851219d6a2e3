/** How long answers of the ingress are not trusted, and when it is probed again. Pure. */

import { backoffDelay } from "@slipway/controller-runtime";
import type { ProbeResult } from "./ingress-probe.ts";

/** How long answers that may be right are not trusted yet, in milliseconds; see `RouteCheck.check`. */
export const DOUBT_MS: Readonly<Partial<Record<ProbeResult, number>>> = {
  "unknown-host": 20_000,
  refused: 1_000,
  silent: 10_000,
};

/** Pause after an answer of an ingress that works and is likely to change soon, in milliseconds. */
const SHORT_MS = 500;
/** After so many equal answers a change is no longer likely. */
const SHORT_TIMES = 20;
/** First pause for an ingress or instance that does not answer, in milliseconds. */
const SILENT_MS = 250;
const LONGEST_MS = 30_000;

/**
 * Pause before the next probe, in milliseconds.
 * @param repeats how many equal answers preceded the last one, in a row
 */
export function pauseMs(result: ProbeResult, repeats: number): number {
  return result === "silent" || result === "unreachable"
    ? backoffDelay(repeats, { baseMs: SILENT_MS, maxMs: LONGEST_MS })
    : backoffDelay(Math.max(0, repeats - SHORT_TIMES), { baseMs: SHORT_MS, maxMs: LONGEST_MS });
}
