import { ApiFailure } from "../lib/api.ts";
import { h } from "../lib/dom.ts";
import { badge, card, table, text } from "../lib/parts.ts";
import type { LogDrainItem, LogDrainList } from "../lib/shapes.ts";
import { type Context, refreshed } from "../lib/view.ts";

const POLL_INTERVAL_MS = 30_000;

/** The organization's log drains, and what becomes of their lines; nothing where there are none, or the key may not read them. */
export function logDrains({ api, signal }: Context): HTMLElement {
  const place = h("div", {});
  refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: () =>
        api.get<LogDrainList>("/v1/organization/log-drains", {}, signal).then(
          ({ data }) => data.log_drains,
          (error: unknown) => {
            if (error instanceof ApiFailure && error.status === 403) {
              return [];
            }
            throw error;
          },
        ),
      show: (drains) => (drains.length === 0 ? [] : card("Log drains", table("Log drains", columns, drains))),
    },
    { signal },
  );
  return place;
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
