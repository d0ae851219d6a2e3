import { h } from "../lib/dom.ts";
import { badge, table, text } from "../lib/parts.ts";
import type { LogDrainItem, LogDrainList } from "../lib/shapes.ts";
import { type Context, empty, refreshed } from "../lib/view.ts";

const POLL_INTERVAL_MS = 30_000;

/** The organization's log drains, and what becomes of their lines. They are requested once this is opened: a key may read projects alone. */
export function logDrains({ api, signal }: Context): HTMLElement {
  const place = h("div", { class: "card flush" });
  const drains = h("details", {}, h("summary", {}, "Log drains"), place);
  const load = async () =>
    (await api.get<LogDrainList>("/v1/organization/log-drains", {}, signal)).data.log_drains;
  const show = (found: readonly LogDrainItem[]) =>
    found.length === 0
      ? empty("No log drains", h("p", {}, "Logs go nowhere else."))
      : table("Log drains", columns, found);
  drains.addEventListener(
    "toggle",
    () => refreshed(place, { intervalMs: POLL_INTERVAL_MS, load, show }, { signal }),
    { once: true, signal },
  );
  return drains;
}

const columns = [
  { name: "Name", cell: ({ name }: LogDrainItem) => text(name) },
  { name: "Status", cell: ({ status }: LogDrainItem) => badge(status) },
  {
    name: "Receiver",
    cell: ({ otlp_http: otlp, syslog }: LogDrainItem) =>
      text(otlp?.endpoint ?? (syslog ? `${syslog.host}:${syslog.port}` : "")),
  },
  { name: "Behind", cell: ({ lag_seconds: lag }: LogDrainItem) => (lag === 0 ? "" : `${lag / 60} min`) },
  { name: "Message", cell: ({ message }: LogDrainItem) => text(message ?? "") },
];
