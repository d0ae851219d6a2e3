/** How long answers of the ingress are doubted, and when it is asked again. Pure. */

import { backoffDelay } from "@slipway/controller-runtime";
import type { ProbeResult } from "./ingress-probe.ts";

/** How long answers that may be right are doubted, in milliseconds; `RouteCheck.check` says why. */
export const DOUBT_MS: Readonly<Partial<Record<ProbeResult, number>>> = {
  "unknown-host": 20_000,
  refused: 1_000,
  silent: 10_000,
};

/** Pause after an answer at which the ingress itself works and is about to change its mind, in milliseconds. */
const SHORT_MS = 500;
/** After so many answers alike it is not about to. */
const SHORT_TIMES = 20;
/** Of an ingress or instance that does not answer, in milliseconds. */
const SILENT_MS = 250;
const LONGEST_MS = 30_000;

/**
 * Pause before the ingress is asked again, in milliseconds.
 * @param repeats how many answers like the last one came before it, in a row
 */
export function pauseMs(result: ProbeResult, repeats: number): number {
  return result === "silent" || result === "unreachable"
    ? backoffDelay(repeats, { baseMs: SILENT_MS, maxMs: LONGEST_MS })
    : backoffDelay(Math.max(0, repeats - SHORT_TIMES), { baseMs: SHORT_MS, maxMs: LONGEST_MS });
}
