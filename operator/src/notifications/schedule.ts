/** When a delivery that failed is sent again: the schedule that Standard Webhooks recommends. Pure. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Pauses after the first attempt, the second, and so on; about three days together. */
export const RETRY_PAUSES_MS: readonly number[] = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];

/** So much longer a pause may be: receivers that were away together are not asked again together. */
const JITTER = 0.2;

/**
 * The pause after an attempt.
 * @param attempts how many there have been
 * @param random from 0 to below 1
 * @returns undefined when there is no other attempt
 */
export function retryPauseMs(attempts: number, random: number): number | undefined {
  const pause = RETRY_PAUSES_MS[attempts - 1];
  return pause === undefined ? undefined : Math.round(pause * (1 + JITTER * random));
}
