import { announce, h, replace, svg } from "./dom.ts";
import { clock, date } from "./format.ts";
import { linear, linePath, round, ticks, timeTicks } from "./scale.ts";

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

const HEIGHT = 180;
const EDGE = { left: 76, right: 12, top: 10, bottom: 24 };

/**
 * A plot with its legend, the values at the pointer, and the same as a table. It can be walked through with the arrow
 * keys. Drawn again when its width changes, so that its text keeps its size.
 */
export function plot(of: Plot): HTMLElement {
  const readout = h("p", { class: "readout", "aria-hidden": true });
  const canvas = h("div", {
    class: "canvas",
    role: "img",
    tabindex: 0,
    "data-key": of.title,
    "aria-label": `${of.title}: ${summary(of)}. Arrow keys read single values.`,
  });
  let width = 0;
  let at: number | undefined;
  const point = (index: number | undefined) => {
    at = index;
    readout.textContent = index === undefined ? "\u00a0" : describePoint(of, index);
    canvas.querySelector(".cursor")?.replaceWith(cursor(of, width, index));
  };
  canvas.addEventListener("pointermove", (event) => {
    const { left } = canvas.getBoundingClientRect();
    point(nearest(of, width, event.clientX - left));
  });
  canvas.addEventListener("pointerleave", () => point(undefined));
  canvas.addEventListener("blur", () => point(undefined));
  canvas.addEventListener("keydown", (event) => {
    const last = of.times.length - 1;
    const to = { ArrowLeft: (at ?? last + 1) - 1, ArrowRight: (at ?? -1) + 1, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) {
      return;
    }
    event.preventDefault();
    const index = Math.min(last, Math.max(0, to));
    point(index);
    announce(describePoint(of, index));
  });
  point(undefined);
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry?.contentRect.width ?? 0);
    if (now === width || now === 0) {
      return;
    }
    width = now;
    replace(canvas, drawing(of, width));
  }).observe(canvas);
  const legend = of.series.map(({ name, kind }) =>
    h("li", {}, h("span", { class: `swatch ${kind}`, "aria-hidden": true }), name),
  );
  return h(
    "figure",
    { class: "plot" },
    h(
      "figcaption",
      {},
      h("span", { class: "plot-title" }, of.title),
      h("ul", { class: "legend" }, ...legend),
    ),
    canvas,
    readout,
    h("details", {}, h("summary", { "data-key": `${of.title} table` }, "Show as a table"), asTable(of)),
  );
}

const known = (values: readonly (number | null)[]): number[] => values.filter((value) => value !== null);

function summary(of: Plot): string {
  const parts = of.series.map(({ name, values }) => {
    const all = known(values);
    return all.length === 0 ? `${name} unknown` : `${name} up to ${of.format(Math.max(...all))}`;
  });
  return parts.join(", ");
}

function describePoint(of: Plot, index: number): string {
  const from = new Date(of.times[index] ?? 0);
  const values = of.series.map(({ name, values: all }) => {
    const value = all[index] ?? null;
    return `${name} ${value === null ? "–" : of.format(value)}`;
  });
  return `${when(of, from)}  ·  ${values.join("  ·  ")}`;
}

function when(of: Plot, from: Date): string {
  const isLong = spanOf(of) > 24 * 3_600_000;
  const seconds = (of.barMs ?? 0) % 60_000 !== 0 || of.as === "lines";
  const start = isLong ? `${date(from)} ${clock(from)}` : clock(from, seconds);
  if (of.barMs === undefined) {
    return start;
  }
  return `${start}–${clock(new Date(from.getTime() + of.barMs), seconds && !isLong)}`;
}

function spanOf({ times, barMs = 0 }: Plot): number {
  return (times.at(-1) ?? 0) + barMs - (times[0] ?? 0);
}

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

function drawing(of: Plot, width: number): SVGSVGElement {
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

function bars({ times, barMs = 0, series }: Plot, x: Scale, y: Scale): SVGElement[] {
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

function lines({ times, barMs = 0, series }: Plot, x: Scale, y: Scale): SVGElement[] {
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

function cursor(of: Plot, width: number, index: number | undefined): SVGElement {
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

function nearest(of: Plot, width: number, place: number): number | undefined {
  const { x } = axes(of, width);
  const distances = of.times.map((time) => Math.abs(x(time + (of.barMs ?? 0) / 2) - place));
  return distances.length === 0 ? undefined : distances.indexOf(Math.min(...distances));
}

function asTable(of: Plot): HTMLElement {
  const head = ["Time", ...of.series.map(({ name }) => name)];
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "dense" },
      h("thead", {}, h("tr", {}, ...head.map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        {},
        ...of.times.map((time, index) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, when(of, new Date(time))),
            ...of.series.map(({ name, values }) => {
              const value = values[index] ?? null;
              return h("td", { "data-name": name, class: "number" }, value === null ? "–" : of.format(value));
            }),
          ),
        ),
      ),
    ),
  );
}
