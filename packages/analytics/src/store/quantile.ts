/** Bits of a bfloat16's fraction, with the one that is not written. */
const PRECISION = 8;

/**
 * The store keeps of a latency the first eight bits. What it tells is the least whole number that begins so; this is the middle of
 * all of them, at most 1/256 away from any. Up to 255 it is exact. Pure.
 */
export function middleOf(told: number): number {
  const bits = Math.floor(Math.log2(told)) + 1;
  return told > 0 && bits > PRECISION ? told + (2 ** (bits - PRECISION) - 1) / 2 : told;
}
