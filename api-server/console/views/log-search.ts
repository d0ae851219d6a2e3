import { type Envelope, projectPath } from "../lib/api.ts";
import { h } from "../lib/dom.ts";
import { count } from "../lib/format.ts";
import { choice, fullMoment, table, text } from "../lib/parts.ts";
import { link, withQuery } from "../lib/route.ts";
import { empty, type ProjectContext, refreshed } from "../lib/view.ts";

interface Line {
  timestamp: string;
  instance: string;
  stream: string;
  level: string | null;
  message: string;
  continues?: true;
}

interface Found extends Envelope<Line[]> {
  next_cursor: string | null;
  omitted: { lines: number; bytes: number; files: number };
}

const LEVELS = [
  ["", "All"],
  ["fatal,error", "Errors"],
  ["fatal,error,warn", "Warnings and errors"],
  ["info,debug,trace", "Information"],
  ["none", "None stated"],
] as const;
const RANGES = [
  ["3600", "Last hour"],
  ["86400", "Last day"],
  ["604800", "Last 7 days"],
] as const;
const LIMIT = 100;

/** What the instances wrote, also those that are gone: by text, level and time, newest first. */
export function logSearch({ api, signal, route }: ProjectContext): HTMLElement {
  const given = (name: string) => route.query.get(name) || undefined;
  const [range] = RANGES.find(([seconds]) => seconds === given("range")) ?? RANGES[0];
  const cursor = given("cursor");
  const filters = { q: given("q"), level: given("level"), instance: given("instance") };
  const go = (change: Record<string, string | undefined>) => {
    location.hash = withQuery(route, { ...change, cursor: undefined });
  };
  const box = h("input", {
    type: "search",
    value: filters.q ?? "",
    placeholder: "Lines with…",
    "aria-label": "Lines with this text",
    "data-key": "q",
    maxlength: 256,
    autocomplete: "off",
    spellcheck: "false",
  });
  const form = h("form", { class: "toolbar", role: "search" }, box, h("button", {}, "Search"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go({ q: box.value || undefined });
  });
  const place = h("div", {});
  refreshed(
    place,
    {
      intervalMs: 60_000,
      load: () => {
        const from = new Date(Date.now() - Number(range) * 1_000).toISOString();
        const query = { ...filters, limit: LIMIT, ...(cursor === undefined ? { from } : { cursor }) };
        return api.get<Line[]>(projectPath(route.project, "logs", "search"), query, signal) as Promise<Found>;
      },
      show: ({ data, next_cursor, omitted }) => [
        ...lacking(omitted),
        data.length === 0 ? empty("No lines found") : table("Lines found", columns, data),
        h(
          "div",
          { class: "foot" },
          h("span", { class: "quiet" }, `${count(data.length)} lines, newest first`),
          next_cursor === null
            ? undefined
            : h(
                "a",
                { class: "button", href: withQuery(route, { cursor: next_cursor }), "data-key": "older" },
                "Older",
              ),
        ),
      ],
      // A page does not change; another search is another one.
      isFinal: () => true,
    },
    { signal },
  );
  return h(
    "section",
    { class: "card flush" },
    h(
      "div",
      { class: "card-head" },
      h("h2", {}, "Search the log"),
      choice("Level", LEVELS, filters.level ?? "", (level) => go({ level: level || undefined })),
      choice("Time", RANGES, range, (to) => go({ range: to })),
      h("a", { class: "button", href: link(["project", route.project, "logs"]), "data-key": "live" }, "Live"),
    ),
    form,
    place,
  );
}

/** What the window lacks, in words; nothing where it lacks nothing. */
function lacking({ lines, files }: Found["omitted"]): HTMLElement[] {
  const parts = [
    ...(lines > 0 ? [`${count(lines)} lines were over the bounds of the project`] : []),
    ...(files > 0 ? [`${count(files)} files were removed before they were read`] : []),
  ];
  return parts.length === 0
    ? []
    : [h("p", { class: "quiet", role: "status" }, `Missing here: ${parts.join(", ")}.`)];
}

const columns = [
  { name: "When", cell: (one: Line) => fullMoment(one.timestamp) },
  { name: "Level", cell: (one: Line) => one.level ?? "–" },
  { name: "Instance", cell: (one: Line) => h("small", { title: one.instance }, one.instance.slice(-5)) },
  {
    name: "Line",
    cell: (one: Line) => h("code", { class: "long" }, `${text(one.message)}${one.continues ? " …" : ""}`),
  },
];
