/** Scales of plots. Pure. */

/** Rising marks of an axis from 0, the last of them at or above `max`: at most `most` steps of 1, 2 or 5 times a power. */
export function ticks(max: number, most = 4, base: 10 | 1024 = 10): number[] {
  if (!(max > 0)) {
    return [0, 1];
  }
  const step = base === 10 ? decimalStep(max / most) : binaryStep(max / most);
  const steps = Math.max(1, Math.ceil(max / step - 1e-9));
  // By multiplication: a sum of steps drifts.
  return Array.from({ length: steps + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

function decimalStep(atLeast: number): number {
  const power = 10 ** Math.floor(Math.log10(atLeast) + 1e-9);
  const factor = [1, 2, 5, 10].find((one) => one * power >= atLeast * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** Powers of two, so that marks are round in KiB and MiB. */
function binaryStep(atLeast: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(atLeast) - 1e-9));
}

/** Maps one range to another, linearly. A range without length maps to the middle. */
export function linear(from: readonly [number, number], to: readonly [number, number]) {
  const length = from[1] - from[0];
  return (value: number): number =>
    length === 0 ? (to[0] + to[1]) / 2 : to[0] + ((value - from[0]) / length) * (to[1] - to[0]);
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [
  1_000,
  5_000,
  15_000,
  30_000,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
];

/**
 * Round moments between two, at most `most` of them, in milliseconds since the epoch.
 * @param offset of the time zone in which they are round, in milliseconds east of UTC
 */
export function timeTicks(from: number, to: number, most: number, offset = 0): number[] {
  const step = TIME_STEPS.find((one) => (to - from) / one <= most) ?? 7 * DAY;
  const first = Math.ceil((from + offset) / step) * step - offset;
  const found: number[] = [];
  for (let moment = first; moment <= to && found.length <= most; moment += step) {
    found.push(moment);
  }
  return found.slice(0, most);
}

/** Line segments of an SVG path through the known points, a gap where one is null. */
export function linePath(points: readonly (readonly [x: number, y: number | null])[]): string {
  let path = "";
  let isOpen = false;
  for (const [x, y] of points) {
    if (y !== null) {
      path += `${isOpen ? "L" : "M"}${round(x)} ${round(y)}`;
    }
    isOpen = y !== null;
  }
  return path;
}

export const round = (value: number): number => Math.round(value * 10) / 10;
