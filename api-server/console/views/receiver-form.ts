import { changeForm, type Outcome, outcome } from "../lib/actions.ts";
import { type Child, h } from "../lib/dom.ts";
import { changeBody, creationBody, type ReceiverForm } from "../lib/receivers.ts";
import { link, type ReceiverKind } from "../lib/route.ts";
import type { Receiver } from "../lib/shapes.ts";
import type { Context } from "../lib/view.ts";

/** The form of a webhook or a recipient of e-mail. */

/** Types of events, which the page names. */
const eventTypes = (): string[] =>
  document.querySelector<HTMLMetaElement>('meta[name="event-types"]')?.content.split(" ") ?? [];

/** Its fields, and what they have. */
function fields(kind: ReceiverKind, of?: Receiver): { elements: Child[]; read: () => ReceiverForm } {
  const isWebhook = kind === "webhooks";
  const address = h("input", {
    type: isWebhook ? "url" : "email",
    required: true,
    maxlength: isWebhook ? 1_024 : 254,
    value: of?.url ?? of?.email ?? "",
    placeholder: isWebhook ? "HTTPS" : "on-call@example.com",
    // Another address is another recipient.
    disabled: !isWebhook && of !== undefined,
    autocomplete: "off",
    spellcheck: "false",
  });
  const description = h("input", { maxlength: 256, value: of?.description ?? "", autocomplete: "off" });
  const boxes = eventTypes().map((type) => ({
    type,
    box: h("input", { type: "checkbox", checked: of?.event_types.includes(type) ?? false }),
  }));
  const projects = h("input", {
    value: of?.project_ids?.join(", ") ?? "",
    placeholder: "All",
    autocomplete: "off",
    spellcheck: "false",
  });
  const enabled = h("input", { type: "checkbox", checked: of?.enabled ?? true });
  const field = (name: string, input: HTMLElement) =>
    h("label", { class: "field" }, h("span", {}, name), input);
  return {
    elements: [
      field(isWebhook ? "URL" : "Address", address),
      isWebhook ? field("Description", description) : undefined,
      h(
        "fieldset",
        {},
        h("legend", {}, "Events"),
        ...boxes.map(({ type, box }) => h("label", { class: "check" }, box, type)),
      ),
      field("Ids of projects", projects),
      of === undefined ? undefined : h("label", { class: "check" }, enabled, "Enabled"),
    ],
    read: () => ({
      address: address.value,
      description: description.value,
      types: boxes.filter(({ box }) => box.checked).map(({ type }) => type),
      projects: projects.value,
      isEnabled: enabled.checked,
    }),
  };
}

/** Creates one. A webhook's secret is shown once, here. */
export function newReceiver({ api, signal }: Context, kind: ReceiverKind): HTMLElement {
  const { elements, read } = fields(kind);
  const to = outcome();
  const card = h("section", { class: "card" });
  const run = async () => {
    const { data } = await api.change<Receiver & { secret?: string }>(
      "POST",
      `/v1/organization/${kind}`,
      creationBody(kind, read()),
      signal,
    );
    const address = link(["notifications", kind, data.id]);
    if (data.secret === undefined) {
      location.hash = address;
    } else {
      card.replaceChildren(...secretShown(data.secret), h("p", {}, h("a", { href: address }, "Done")));
    }
    return undefined;
  };
  card.append(
    h("h2", {}, kind === "webhooks" ? "A new webhook" : "A new recipient of e-mail"),
    changeForm("Create", { run, outcome: to, signal }, ...elements),
    to.element,
  );
  return card;
}

/** A secret, which no other answer has. */
export const secretShown = (secret: string): HTMLElement[] => [
  h("h2", {}, "The secret"),
  h("p", { role: "status" }, "Deliveries are signed with it. It is shown here alone."),
  h("p", {}, h("code", { class: "long" }, secret)),
];

/** Changes one. @param changed called once it is */
export function receiverForm(
  { api, signal }: Context,
  kind: ReceiverKind,
  of: Receiver,
  { outcome: to, changed }: { outcome: Outcome; changed: () => Promise<void> },
): HTMLElement {
  const { elements, read } = fields(kind, of);
  const made = read();
  const run = async () => {
    const body = changeBody(kind, made, read());
    if (body === undefined) {
      return "Nothing is different.";
    }
    await api.change("PATCH", `/v1/organization/${kind}/${of.id}`, body, signal);
    await changed();
    return "Saved.";
  };
  const summary = h("summary", { "data-key": "change" }, "Change");
  return h("details", {}, summary, changeForm("Save", { run, outcome: to, signal }, ...elements));
}
