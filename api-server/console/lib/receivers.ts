import type { ReceiverKind } from "./route.ts";
import type { Receiver } from "./shapes.ts";

/** Where events are sent: what a form says of it, and what it is in words. Pure. */

/** What the form of a receiver has. */
export interface ReceiverForm {
  /** A URL, or an e-mail address. */
  address: string;
  description: string;
  types: readonly string[];
  /** Ids with spaces or commas between; empty: all projects. */
  projects: string;
  isEnabled: boolean;
}

/** The body that creates a receiver. */
export function creationBody(
  kind: ReceiverKind,
  { address, description, types, projects }: ReceiverForm,
): object {
  const ids = projectIds(projects);
  return {
    ...(kind === "webhooks" ? { url: address.trim() } : { email: address.trim() }),
    ...(kind === "webhooks" && description.trim() !== "" ? { description: description.trim() } : {}),
    event_types: types,
    ...(ids.length === 0 ? {} : { project_ids: ids }),
  };
}

/**
 * The body that changes what differs from the form as it was made; undefined when nothing does. What has changed meanwhile otherwise,
 * such as a receiver that was disabled, stays so.
 */
export function changeBody(kind: ReceiverKind, made: ReceiverForm, now: ReceiverForm): object | undefined {
  const before = members(kind, made);
  const changed = Object.entries(members(kind, now)).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  return changed.length === 0 ? undefined : Object.fromEntries(changed);
}

function members(kind: ReceiverKind, form: ReceiverForm): Record<string, unknown> {
  const ids = projectIds(form.projects);
  return {
    ...(kind === "webhooks"
      ? { url: form.address.trim(), description: form.description.trim() || null }
      : {}),
    event_types: form.types,
    project_ids: ids.length === 0 ? null : ids,
    enabled: form.isEnabled,
  };
}

const projectIds = (text: string): string[] => [...new Set(text.split(/[\s,]+/).filter((id) => id !== ""))];

/** A receiver's state as one word of a badge. */
export function receiverStatus({ enabled, disabled_reason, confirmed, failing_since }: Receiver): string {
  if (!enabled) {
    return disabled_reason === undefined || disabled_reason === "requested" ? "disabled" : disabled_reason;
  }
  if (confirmed === false) {
    return "unconfirmed";
  }
  return failing_since === undefined ? "active" : "failing";
}
