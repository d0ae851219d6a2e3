import { ApiFailure, projectPath } from "../lib/api.ts";
import { h } from "../lib/dom.ts";
import { bytes, cores } from "../lib/format.ts";
import {
  continued,
  HISTORY_RANGES,
  type History,
  historyRange,
  namesOf,
  type PastSample,
  pastOf,
} from "../lib/history.ts";
import { choice, tile, tiles } from "../lib/parts.ts";
import { plot } from "../lib/plot.ts";
import { withQuery } from "../lib/route.ts";
import { addSample, type Sample, sampleOf } from "../lib/series.ts";
import { empty, type ProjectContext, refreshed } from "../lib/view.ts";

const POLL_INTERVAL_MS = 5_000;
/** How often the past is requested again: what follows it is measured by the page. */
const HISTORY_INTERVAL_MS = 60_000;
/** By project and instance; kept while the page is open: the past is in steps, these are not. */
const series = new Map<string, readonly Sample[]>();

/** Clears what was measured for another key. */
export const forgetSamples = (): void => series.clear();

interface Shown {
  instance: string | undefined;
  past: readonly PastSample[];
  live: readonly Sample[];
  hasHistory: boolean;
}

/** CPU, memory and network of one instance: now, and for the chosen time before. */
export function usage(context: ProjectContext): HTMLElement {
  const { signal, route } = context;
  const range = historyRange(route.query.get("range"));
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
  const loader = new UsageLoader(context, range);
  const place = h("div", { class: "stack" });
  refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: () => loader.load(),
      show: (shown) => {
        if (shown.instance === undefined) {
          return card(empty("Nothing runs", h("p", {}, "There is no instance to measure.")));
        }
        offer(loader.names, shown.instance);
        return shown.live.length + shown.past.length === 0
          ? card(
              empty(
                "Nothing was measured yet",
                h("p", {}, "A new instance has its first figures after about a minute."),
              ),
            )
          : show(shown, range);
      },
    },
    { signal },
  );
  const tabs = HISTORY_RANGES.map(([seconds, name]) =>
    h(
      "a",
      {
        href: withQuery(route, { range: String(seconds) }),
        "aria-current": seconds === range ? "true" : undefined,
        "data-key": `range ${seconds}`,
      },
      name,
    ),
  );
  return h(
    "div",
    { class: "stack" },
    h("nav", { class: "segments", "aria-label": "Range" }, ...tabs),
    h("div", { class: "filters" }, picker),
    place,
  );
}

/** Reads what one instance uses, and every minute what it used before. */
class UsageLoader {
  names: readonly string[] = [];
  /** Those that ran when the page was opened. */
  #running: ReadonlySet<string> = new Set();
  readonly #context: ProjectContext;
  readonly #range: number;
  readonly #path: string;
  /** Undefined until it was requested; null where the platform has none. */
  #history: History | null | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  /** When the answer with the history came, in milliseconds since the epoch. */
  #answeredAt = 0;
  #namedAt = Number.NEGATIVE_INFINITY;

  constructor(context: ProjectContext, range: number) {
    this.#context = context;
    this.#range = range;
    this.#path = projectPath(context.route.project, "metrics");
  }

  async load(): Promise<Shown> {
    const { route } = this.#context;
    if (this.names.length === 0) {
      const running = await this.#runningNames();
      // Of a project without any instance it is not asked for each time.
      const isDue = performance.now() - this.#namedAt >= HISTORY_INTERVAL_MS;
      this.#namedAt = isDue ? performance.now() : this.#namedAt;
      const everything = isDue ? await this.#request({}) : undefined;
      this.#running = new Set(running);
      this.names = [...new Set([...running, ...(everything ? namesOf(everything.history) : [])])];
    }
    const instance = route.query.get("instance") || this.names[0];
    if (instance === undefined) {
      return { instance, past: [], live: [], hasHistory: false };
    }
    this.names = [...new Set([...this.names, instance])];
    const now = await this.#measure(instance);
    const past = this.#history ? pastOf(this.#history, instance, this.#answeredAt) : [];
    return { instance, past, live: now, hasHistory: Boolean(this.#history) };
  }

  /** Pods of applications have names of their own; databases' are numbered. */
  async #runningNames(): Promise<string[]> {
    const { api, signal, route, project } = this.#context;
    if (project.type_project !== "http" && project.type_project !== "worker") {
      return Array.from({ length: project.instances }, (_, index) => `${route.project}-${index}`);
    }
    const { instances: found = [] } = await api.get<unknown>(projectPath(route.project, "logs"), {}, signal);
    return [...found].sort();
  }

  /** What the page has measured, with the newest. The past comes with the same answer when it is due. */
  async #measure(instance: string): Promise<readonly Sample[]> {
    const { api, signal, route } = this.#context;
    const isDue = this.#history !== null && performance.now() - this.#readAt >= HISTORY_INTERVAL_MS;
    const found = isDue ? await this.#request({ instance }) : undefined;
    if (found) {
      this.#readAt = performance.now();
      this.#answeredAt = Date.now();
      this.#history = found.history;
    }
    const key = `${route.project} ${instance}`;
    const known = series.get(key) ?? [];
    const isGone = !this.#running.has(instance);
    const data =
      found ?? (isGone ? {} : (await api.get<object>(this.#path, { instance }, signal).catch(gone)).data);
    const sample = sampleOf(data, Date.now());
    const samples = sample === undefined ? known : addSample(known, sample);
    series.set(key, samples);
    return samples;
  }

  /** The metrics with their past; undefined where the platform has none, or the instance has none in this time. */
  async #request(query: { instance?: string }): Promise<{ history: History } | undefined> {
    const { api, signal } = this.#context;
    try {
      const wanted = { ...query, range_seconds: this.#range };
      return (await api.get<{ history: History }>(this.#path, wanted, signal)).data;
    } catch (error) {
      if (!(error instanceof ApiFailure) || !/^(ANALYTICS_|INSTANCE_NOT_FOUND$)/.test(error.code)) {
        throw error;
      }
      // One that does not answer now is asked again.
      this.#history = error.code === "ANALYTICS_NOT_CONFIGURED" ? null : this.#history;
      this.#readAt = performance.now();
      return undefined;
    }
  }
}

/** Of an instance that is gone there is only the past. */
function gone(error: unknown): { data: object } {
  if (error instanceof ApiFailure && error.code === "INSTANCE_NOT_FOUND") {
    return { data: {} };
  }
  throw error;
}

const MIN_SPAN_MS = 5 * 60_000;
const card = (...children: HTMLElement[]) => h("section", { class: "card" }, ...children);

function show({ past, live, hasHistory }: Shown, range: number): HTMLElement[] {
  const samples = continued(past, live);
  const last = live.at(-1);
  const common = { as: "lines", minSpanMs: MIN_SPAN_MS } as const;
  const times = samples.map(({ at }) => at);
  const of = (values: (one: Sample) => number | null) => samples.map(values);
  const plots = [
    plot({
      ...common,
      title: "CPU",
      times,
      series: [{ name: "CPU", kind: "first", values: of(({ cpu }) => cpu) }],
      format: cores,
    }),
    plot({
      ...common,
      title: "Memory",
      times,
      series: [{ name: "memory", kind: "second", values: of(({ memory }) => memory) }],
      format: bytes,
      base: 1024,
    }),
  ];
  if (past.some(({ received, transmitted }) => received !== null || transmitted !== null)) {
    plots.push(
      plot({
        ...common,
        title: "Network, each second",
        times: past.map(({ at }) => at),
        series: [
          { name: "received", kind: "first", values: past.map(({ received }) => received) },
          { name: "transmitted", kind: "second", values: past.map(({ transmitted }) => transmitted) },
        ],
        format: bytes,
        base: 1024,
      }),
    );
  }
  const [, name] = HISTORY_RANGES.find(([seconds]) => seconds === range) ?? HISTORY_RANGES[0];
  const note = hasHistory
    ? `The plots are of the last ${name}; gaps are times of which nothing is known.`
    : "The plots begin when this page was opened: the platform keeps the newest figures alone.";
  return [
    card(
      tiles(tile("CPU now", cores(last?.cpu)), tile("Memory now", bytes(last?.memory))),
      h("p", { class: "quiet" }, note),
    ),
    ...plots.map((one) => card(one)),
  ];
}
