import { action, changeForm, outcome } from "../lib/actions.ts";
import { h } from "../lib/dom.ts";
import { words } from "../lib/format.ts";
import { badge, choice, facts, fullMoment, moment, pages, table, text } from "../lib/parts.ts";
import { receiverStatus } from "../lib/receivers.ts";
import { link, type ReceiverKind, type Route, withQuery } from "../lib/route.ts";
import type { Delivery, DeliveryList, Receiver } from "../lib/shapes.ts";
import { type Context, empty, refreshed } from "../lib/view.ts";
import { receiverForm, secretShown } from "./receiver-form.ts";

const POLL_INTERVAL_MS = 5_000;
const STATUSES = ["pending", "succeeded", "failed"];

/** One webhook or recipient: its state, what may be done with it, and its deliveries. */
export function receiver(
  context: Context,
  kind: ReceiverKind,
  id: string,
  route: Extract<Route, { view: "notifications" }>,
): HTMLElement {
  const { api, signal } = context;
  const path = `/v1/organization/${kind}/${encodeURIComponent(id)}`;
  const place = h("section", { class: "card" });
  const to = outcome();
  const secret = h("div", {});
  const form = h("div", {});
  /** What the form was made from. */
  let made: string | undefined;
  const log = deliveries(context, path, route);
  const change = (name: string, run: () => Promise<string | undefined>, isFinal = false) =>
    action(name, { run, outcome: to, signal }, isFinal);
  const post = async (part: string, body?: object) => {
    await api.change("POST", `${path}/${part}`, body, signal);
    await Promise.all([reload(), log.reload()]);
  };
  const remove = async () => {
    await api.change("DELETE", path, undefined, signal);
    location.hash = link(["notifications"]);
    return undefined;
  };
  const rotate = async () => {
    const { data } = await api.change<{ secret: string }>("POST", `${path}/rotate-secret`, undefined, signal);
    secret.replaceChildren(...secretShown(data.secret));
    return "The secret before it signs for a day more.";
  };
  const said = (run: () => Promise<void>, words: string) => async () => {
    await run();
    return words;
  };
  const confirmation = (): HTMLElement[] => {
    const code = h("input", { maxlength: 9, required: true, autocomplete: "off", placeholder: "XXXX-XXXX" });
    const run = said(() => post("confirm", { code: code.value.trim().toUpperCase() }), "Confirmed.");
    const field = h("label", { class: "field" }, h("span", {}, "Code from the mail"), code);
    return [
      changeForm("Confirm", { run, outcome: to, signal }, field),
      change(
        "Send another code",
        said(() => post("send-confirmation"), "It is on its way."),
      ),
    ];
  };
  const saved = async () => {
    form.replaceChildren();
    made = undefined;
    await reload();
  };
  const describe = (one: Receiver) => [
    h("h2", {}, text(one.url ?? one.email ?? one.id)),
    facts([
      ["Status", badge(receiverStatus(one))],
      ["Fails since", one.failing_since === undefined ? undefined : fullMoment(one.failing_since)],
      ["Events", one.event_types.join(", ")],
      ["Projects", one.project_ids ? text(one.project_ids.join(", ")) : "all"],
      ["Events left out", one.dropped_events === 0 ? undefined : String(one.dropped_events)],
      ["Created", fullMoment(one.created_at)],
    ]),
    ...(one.confirmed === false ? confirmation() : []),
    h(
      "div",
      { class: "actions" },
      change(
        "Send a test",
        said(() => post("test"), "It is on its way."),
      ),
      kind === "webhooks" ? change("Replace the secret", rotate, true) : undefined,
      change("Delete", remove, true),
    ),
  ];
  const reload = refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () => (await api.get<Receiver>(path, {}, signal)).data,
      show: (one) => {
        // While it is closed: what is being typed is not replaced by a refresh.
        if (form.querySelector("details")?.open !== true && made !== JSON.stringify(one)) {
          made = JSON.stringify(one);
          form.replaceChildren(receiverForm(context, kind, one, { outcome: to, changed: saved }));
        }
        return describe(one);
      },
    },
    { signal },
  );
  return h("div", { class: "stack" }, place, to.element, secret, form, log.element);
}

function deliveries(
  { api, signal }: Context,
  path: string,
  route: Extract<Route, { view: "notifications" }>,
): { element: HTMLElement; reload: () => Promise<void> } {
  const page = Math.max(1, Number.parseInt(route.query.get("page") ?? "", 10) || 1);
  const status = STATUSES.find((one) => one === route.query.get("status"));
  const place = h("div", {});
  const to = outcome();
  const again = ({ id }: Delivery) =>
    action("Send again", {
      run: async () => {
        await api.change("POST", `${path}/deliveries/${id}/redeliver`, undefined, signal);
        await reload();
        return "It is on its way.";
      },
      outcome: to,
      signal,
    });
  const columns = [
    { name: "When", cell: (one: Delivery) => fullMoment(one.created_at) },
    {
      name: "Event",
      cell: (one: Delivery) => [
        one.event_type,
        one.project_id ? h("small", {}, text(one.project_id)) : undefined,
      ],
    },
    {
      name: "Status",
      cell: (one: Delivery) => [
        badge(one.status),
        one.next_attempt_at && one.attempts > 0
          ? h("small", {}, "again ", moment(one.next_attempt_at))
          : undefined,
      ],
    },
    {
      name: "Answer",
      cell: (one: Delivery) =>
        [one.response_code, one.error && words(one.error)].filter((part) => part !== undefined).join(" ") ||
        "–",
    },
    { name: "Attempts", cell: (one: Delivery) => String(one.attempts), isNumber: true as const },
    { name: "", cell: (one: Delivery) => (one.status === "pending" ? undefined : again(one)) },
  ];
  const reload = refreshed(
    place,
    {
      intervalMs: POLL_INTERVAL_MS,
      load: async () => (await api.get<DeliveryList>(`${path}/deliveries`, { page, status }, signal)).data,
      show: ({ deliveries: found, pagination }) =>
        found.length === 0
          ? empty("No deliveries")
          : [
              table("Deliveries", columns, found),
              h(
                "div",
                { class: "foot" },
                h("span", { class: "quiet" }, `${pagination.total} in all`),
                pages(page, pagination.pages, (next) => withQuery(route, { page: String(next) })),
              ),
            ],
    },
    { signal },
  );
  const options = [["", "Any"], ...STATUSES.map((one) => [one, words(one)] as const)] as const;
  const element = h(
    "section",
    { class: "card flush" },
    h(
      "div",
      { class: "card-head" },
      h("h2", {}, "Deliveries"),
      choice("Status", options, status ?? "", (chosen) => {
        location.hash = withQuery(route, { status: chosen || undefined, page: undefined });
      }),
    ),
    to.element,
    place,
  );
  return { element, reload };
}
