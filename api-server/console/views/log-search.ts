import { type Envelope, projectPath } from "../lib/api.ts";
import { h } from "../lib/dom.ts";
import { count, localDateTime } from "../lib/format.ts";
import { CHOSEN, isoOf, momentsOf, RANGES, rangeOf, windowOf } from "../lib/log-window.ts";
import { type Column, choice, fullMoment, table, text } from "../lib/parts.ts";
import { link, type Route, withQuery } from "../lib/route.ts";
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
const LIMIT = 100;

/** What the instances wrote, also those that are gone: by text, level, instance and time, newest first. */
export function logSearch({ api, signal, route }: ProjectContext): HTMLElement {
  const given = (name: string) => route.query.get(name) || undefined;
  const range = rangeOf(route.query);
  const moments = momentsOf(route.query);
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
  const [from, to] = [momentInput("From", moments.from), momentInput("To", moments.to)];
  const form = h(
    "form",
    { class: "toolbar", role: "search" },
    box,
    h("label", { class: "check" }, "From", from),
    h("label", { class: "check" }, "To", to),
    h("button", {}, "Search"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go({ q: box.value || undefined, from: isoOf(from.value), to: isoOf(to.value) });
  });
  const place = h("div", {});
  refreshed(
    place,
    {
      intervalMs: 60_000,
      load: () => {
        const window = cursor === undefined ? windowOf(route.query, Date.now()) : { cursor };
        const query = { ...filters, limit: LIMIT, ...window };
        return api.get<Line[]>(projectPath(route.project, "logs", "search"), query, signal) as Promise<Found>;
      },
      show: ({ data, next_cursor, omitted }) => [
        ...lacking(omitted),
        data.length === 0 ? empty("No lines found") : table("Lines found", columnsOf(route), data),
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
      choice("Time", range === CHOSEN ? [...RANGES, [CHOSEN, "From and to"]] : RANGES, range, (seconds) =>
        go({ range: seconds, from: undefined, to: undefined }),
      ),
      h("a", { class: "button", href: link(["project", route.project, "logs"]), "data-key": "live" }, "Live"),
    ),
    form,
    filters.instance === undefined ? undefined : onlyOf(filters.instance, route),
    place,
  );
}

/** A moment in the browser's time zone, to the second. */
const momentInput = (name: string, iso: string | undefined): HTMLInputElement =>
  h("input", {
    type: "datetime-local",
    step: 1,
    value: iso === undefined ? "" : localDateTime(new Date(iso)),
    "data-key": name,
  });

/** Which instance's lines alone are shown, and the way back to all. */
const onlyOf = (instance: string, route: Route): HTMLElement =>
  h(
    "p",
    { class: "quiet" },
    "Only lines of ",
    h("code", {}, text(instance)),
    " · ",
    h(
      "a",
      { href: withQuery(route, { instance: undefined, cursor: undefined }), "data-key": "all instances" },
      "All instances",
    ),
  );

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

const columnsOf = (route: Route): Column<Line>[] => [
  { name: "When", cell: (one) => fullMoment(one.timestamp) },
  { name: "Level", cell: (one) => one.level ?? "–" },
  {
    name: "Instance",
    cell: (one) =>
      h(
        "a",
        { href: withQuery(route, { instance: one.instance, cursor: undefined }), title: text(one.instance) },
        text(one.instance.slice(-5)),
      ),
  },
  {
    name: "Line",
    cell: (one) => h("code", { class: "long" }, `${text(one.message)}${one.continues ? " …" : ""}`),
  },
];
