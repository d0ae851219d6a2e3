import { projectPath } from "../lib/api.ts";
import { h } from "../lib/dom.ts";
import { bytes, cores } from "../lib/format.ts";
import { choice, tile, tiles } from "../lib/parts.ts";
import { plot } from "../lib/plot.ts";
import { withQuery } from "../lib/route.ts";
import { addSample, type Sample, sampleOf } from "../lib/series.ts";
import { empty, type ProjectContext, refreshed } from "../lib/view.ts";

const POLL_INTERVAL_MS = 5_000;
/** By project and instance; kept while the page is open, since the API reports the newest sample alone. */
const series = new Map<string, readonly Sample[]>();

/** Clears what was measured for another key. */
export const forgetSamples = (): void => series.clear();

/** CPU and memory of one instance: now, and since the page was opened. */
export function usage({ api, signal, route, project }: ProjectContext): HTMLElement {
  const { type_project: type, instances } = project;
  const path = projectPath(route.project, "metrics");
  const chosen = route.query.get("instance") || undefined;
  const picker = h("div", {});
  const offer = (names: readonly string[], chosen: string) => {
    if (picker.childElementCount > 0 || names.length === 0) {
      return;
    }
    picker.append(
      choice(
        "Instance",
        names.map((name) => [name, name] as const),
        chosen,
        (instance) => {
          location.hash = withQuery(route, { instance });
        },
      ),
    );
  };
  /** Pods of applications have names of their own; databases' are numbered. */
  const findNames = async (): Promise<string[]> => {
    if (type !== "http" && type !== "worker") {
      return Array.from({ length: instances }, (_, index) => `${route.project}-${index}`);
    }
    const { instances: found = [] } = await api.get<unknown>(projectPath(route.project, "logs"), {}, signal);
    return [...found].sort();
  };

  let names: string[] = [];
  const place = h("div", { class: "stack" });
  refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () => {
        if (names.length === 0) {
          names = await findNames();
        }
        const instance = chosen ?? names[0];
        if (instance === undefined) {
          return { instance, samples: [] };
        }
        const key = `${route.project} ${instance}`;
        const { data } = await api.get<object>(path, { instance }, signal);
        const sample = sampleOf(data, Date.now());
        const samples =
          sample === undefined ? (series.get(key) ?? []) : addSample(series.get(key) ?? [], sample);
        series.set(key, samples);
        return { instance, samples };
      },
      show: ({ instance, samples }) => {
        if (instance === undefined) {
          return card(empty("Nothing runs", h("p", {}, "There is no instance to measure.")));
        }
        offer([...new Set([...names, instance])], instance);
        return samples.length === 0
          ? card(
              empty(
                "Nothing was measured yet",
                h("p", {}, "A new instance has its first figures after about a minute."),
              ),
            )
          : show(samples);
      },
    },
    { signal },
  );
  return h("div", { class: "stack" }, h("div", { class: "filters" }, picker), place);
}

const MIN_SPAN_MS = 5 * 60_000;
const card = (...children: HTMLElement[]) => h("section", { class: "card" }, ...children);

function show(samples: readonly Sample[]): HTMLElement[] {
  const last = samples.at(-1);
  const times = samples.map(({ at }) => at);
  const cpu = samples.map((one) => one.cpu);
  const memory = samples.map((one) => one.memory);
  return [
    card(
      tiles(tile("CPU now", cores(last?.cpu)), tile("Memory now", bytes(last?.memory))),
      h(
        "p",
        { class: "quiet" },
        "The plots begin when this page was opened: the platform keeps the newest figures alone.",
      ),
    ),
    card(
      plot({
        title: "CPU",
        as: "lines",
        times,
        minSpanMs: MIN_SPAN_MS,
        series: [{ name: "CPU", kind: "first", values: cpu }],
        format: cores,
      }),
    ),
    card(
      plot({
        title: "Memory",
        as: "lines",
        times,
        minSpanMs: MIN_SPAN_MS,
        series: [{ name: "memory", kind: "second", values: memory }],
        format: bytes,
        base: 1024,
      }),
    ),
  ];
}
