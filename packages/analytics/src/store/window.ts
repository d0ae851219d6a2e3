/** A stretch of time, in milliseconds since the epoch: `from` is in it, `to` is not. */
export interface Window {
  from: number;
  to: number;
}

/** Stretches of one length, in milliseconds, that begin at multiples of it since the epoch. */
export interface Parts<Unit> {
  unit: Unit;
  /** Each of full units. */
  windows: Window[];
}

/**
 * Takes a window apart into its full units, the longest first, and what is left at its edges. No moment lies in two of them.
 * Pure.
 * @param units from the longest to the shortest, each a multiple of the next
 */
export function partsOf<Unit extends { ms: number }>(
  window: Window,
  units: readonly Unit[],
): { full: Parts<Unit>[]; edges: Window[] } {
  const full: Parts<Unit>[] = [];
  let left = window.from < window.to ? [window] : [];
  for (const unit of units) {
    const windows: Window[] = [];
    const rest: Window[] = [];
    for (const { from, to } of left) {
      const first = Math.ceil(from / unit.ms) * unit.ms;
      const last = Math.floor(to / unit.ms) * unit.ms;
      if (first >= last) {
        rest.push({ from, to });
        continue;
      }
      windows.push({ from: first, to: last });
      if (from < first) {
        rest.push({ from, to: first });
      }
      if (last < to) {
        rest.push({ from: last, to });
      }
    }
    if (windows.length > 0) {
      full.push({ unit, windows });
    }
    left = rest;
  }
  return { full, edges: left };
}
