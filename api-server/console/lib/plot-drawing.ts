import { svg } from "./dom.ts";
import { clock, date } from "./format.ts";
import { linear, linePath, round, ticks, timeTicks } from "./scale.ts";

/** The drawing of a plot as SVG: grid, labels, bars or lines, and the cursor. */

/** One line, or one layer of the bars. */
export interface Series {
  name: string;
  /** Class that gives it its colour. */
  kind: string;
  /** A value for each time; null where nothing is known. */
  values: readonly (number | null)[];
}

export interface Plot {
  title: string;
  /** Layers of bars on each other, or lines. */
  as: "bars" | "lines";
  /** The times of the values, in milliseconds since the epoch; of bars, where each begins. */
  times: readonly number[];
  /** How long each bar lasts, in milliseconds. */
  barMs?: number;
  /** Shortest time that the axis shows, in milliseconds: a first value does not fill it. */
  minSpanMs?: number;
  series: readonly Series[];
  format: (value: number) => string;
  /** 1024 for sizes. */
  base?: 10 | 1024;
}

export const known = (values: readonly (number | null)[]): number[] =>
  values.filter((value) => value !== null);

const HEIGHT = 180;
const EDGE = { left: 76, right: 12, top: 10, bottom: 24 };

function axes(of: Plot, width: number) {
  const { times, barMs = 0, series } = of;
  const highest = Math.max(
    0,
    ...(of.as === "bars"
      ? times.map((_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0))
      : series.flatMap(({ values }) => known(values))),
  );
  const marks = ticks(highest, 4, of.base);
  const to = (times.at(-1) ?? 0) + barMs;
  const from = Math.min(times[0] ?? 0, to - (of.minSpanMs ?? 0));
  return {
    marks,
    from,
    to,
    x: linear([from, to], [EDGE.left, width - EDGE.right]),
    y: linear([0, marks.at(-1) ?? 1], [HEIGHT - EDGE.bottom, EDGE.top]),
  };
}

export function drawing(of: Plot, width: number): SVGSVGElement {
  const { marks, from, to, x, y } = axes(of, width);
  const bottom = HEIGHT - EDGE.bottom;
  const grid = marks.map((mark) =>
    svg(
      "g",
      {},
      svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(mark), y2: y(mark) }),
      svg("text", { class: "mark", x: EDGE.left - 8, y: y(mark) + 4, "text-anchor": "end" }, of.format(mark)),
    ),
  );
  const most = Math.max(2, Math.floor((width - EDGE.left) / 90));
  const offset = -new Date(from).getTimezoneOffset() * 60_000;
  const moments = to > from ? timeTicks(from, to, most, offset) : [];
  const isLong = to - from > 24 * 3_600_000;
  const isFine = moments.some((moment) => moment % 60_000 !== 0);
  const labels = moments.map((moment) => {
    const at = new Date(moment);
    const label = isLong ? `${date(at).slice(5)} ${clock(at)}` : clock(at, isFine);
    const place = Math.min(x(moment), width - EDGE.right - 16);
    return svg("text", { class: "mark", x: round(place), y: HEIGHT - 6, "text-anchor": "middle" }, label);
  });
  const shapes = of.as === "bars" ? bars(of, x, y) : lines(of, x, y);
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, "aria-hidden": true },
    ...grid,
    svg("line", { class: "axis", x1: EDGE.left, x2: width - EDGE.right, y1: bottom, y2: bottom }),
    ...labels,
    ...shapes,
    cursor(of, width, undefined),
  );
}

type Scale = (value: number) => number;

export function bars({ times, barMs = 0, series }: Plot, x: Scale, y: Scale): SVGElement[] {
  return times.flatMap((time, index) => {
    let base = 0;
    const [left, right] = [x(time), x(time + barMs)];
    const gap = Math.min(3, (right - left) / 6);
    return series.flatMap(({ kind, values }) => {
      const value = values[index] ?? 0;
      if (value <= 0) {
        return [];
      }
      const [low, high] = [y(base), y(base + value)];
      base += value;
      return svg("rect", {
        class: kind,
        x: round(left + gap),
        width: round(Math.max(1, right - left - 2 * gap)),
        y: round(high),
        // A single failure among thousands is seen, too.
        height: Math.max(1, round(low - high)),
      });
    });
  });
}

export function lines({ times, barMs = 0, series }: Plot, x: Scale, y: Scale): SVGElement[] {
  return series.flatMap(({ kind, values }) => {
    const points = times.map((time, index) => {
      const value = values[index] ?? null;
      return [x(time + barMs / 2), value === null ? null : y(value)] as const;
    });
    // A value without neighbours is no line, so all of a few are dots.
    const dots = points.filter((point): point is [number, number] => point[1] !== null);
    const isFew = dots.length <= 60;
    return [
      svg("path", { class: `line ${kind}`, d: linePath(points) }),
      ...(isFew
        ? dots.map(([cx, cy]) => svg("circle", { class: kind, cx: round(cx), cy: round(cy), r: 3 }))
        : []),
    ];
  });
}

export function cursor(of: Plot, width: number, index: number | undefined): SVGElement {
  const { x } = axes(of, width);
  const time = index === undefined ? undefined : of.times[index];
  const place = time === undefined ? -10 : round(x(time + (of.barMs ?? 0) / 2));
  return svg("line", {
    class: "cursor",
    x1: place,
    x2: place,
    y1: EDGE.top,
    y2: HEIGHT - EDGE.bottom,
    visibility: time === undefined ? "hidden" : "visible",
  });
}

export function nearest(of: Plot, width: number, place: number): number | undefined {
  const { x } = axes(of, width);
  const distances = of.times.map((time) => Math.abs(x(time + (of.barMs ?? 0) / 2) - place));
  return distances.length === 0 ? undefined : distances.indexOf(Math.min(...distances));
}
