import { announce, h, replace } from "./dom.ts";
import { clock, date } from "./format.ts";
import { cursor, drawing, known, nearest, type Plot } from "./plot-drawing.ts";

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
