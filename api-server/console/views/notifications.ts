import { h } from "../lib/dom.ts";
import { badge, type Column, table, text } from "../lib/parts.ts";
import { receiverStatus } from "../lib/receivers.ts";
import { link, type ReceiverKind, type Route } from "../lib/route.ts";
import type { Receiver } from "../lib/shapes.ts";
import { type Context, empty, refreshed } from "../lib/view.ts";
import { receiver } from "./receiver.ts";
import { newReceiver } from "./receiver-form.ts";

const POLL_INTERVAL_MS = 10_000;

const KINDS = {
  webhooks: { title: "Webhooks", none: "No webhooks", add: "Add a webhook" },
  "email-recipients": { title: "E-mail", none: "No recipients of e-mail", add: "Add a recipient" },
} as const;

/** Where the organization's events are sent: all receivers, a new one, or one with its deliveries. */
export function notifications(
  context: Context,
  route: Extract<Route, { view: "notifications" }>,
): HTMLElement {
  const { kind, item } = route;
  const title = h("h1", { tabindex: -1 }, "Notifications");
  if (kind === undefined || item === undefined) {
    const home = h("p", { class: "quiet" }, h("a", { href: link(["projects"]) }, "All projects"));
    return h(
      "div",
      { class: "stack" },
      home,
      title,
      list(context, "webhooks"),
      list(context, "email-recipients"),
    );
  }
  const all = h("p", { class: "quiet" }, h("a", { href: link(["notifications"]) }, "All notifications"));
  const content = item === "new" ? newReceiver(context, kind) : receiver(context, kind, item, route);
  return h("div", { class: "stack" }, all, title, content);
}

function list({ api, signal }: Context, kind: ReceiverKind): HTMLElement {
  const { title, none, add } = KINDS[kind];
  const place = h("div", {});
  refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () => {
        const { data } = await api.get<{ webhooks?: Receiver[]; recipients?: Receiver[] }>(
          `/v1/organization/${kind}`,
          {},
          signal,
        );
        return data.webhooks ?? data.recipients ?? [];
      },
      show: (found) => (found.length === 0 ? empty(none) : table(title, columnsOf(kind), found)),
    },
    { signal },
  );
  return h(
    "section",
    { class: "card flush" },
    h(
      "div",
      { class: "card-head" },
      h("h2", {}, title),
      h("a", { class: "button", href: link(["notifications", kind, "new"]), "data-key": add }, add),
    ),
    place,
  );
}

const columnsOf = (kind: ReceiverKind): Column<Receiver>[] => [
  {
    name: kind === "webhooks" ? "URL" : "Address",
    cell: ({ id, url, email, description }) => [
      h(
        "a",
        { href: link(["notifications", kind, id]), class: "strong", "data-key": id },
        text(url ?? email ?? id),
      ),
      description === undefined ? undefined : h("small", {}, text(description)),
    ],
  },
  { name: "Status", cell: (one) => badge(receiverStatus(one)) },
  { name: "Events", cell: ({ event_types: types }) => types.join(", ") },
  { name: "Projects", cell: ({ project_ids: ids }) => (ids ? text(ids.join(", ")) : "all") },
];
