import type { NotificationEvent } from "./notification-event.ts";

/** What is recorded of alerts, and its events. Pure. */

/** `no_data`: nothing is known of what the rule watches, and nothing was firing. */
export type AlertState = "ok" | "firing" | "no_data";

/** Which rule of which project. A rule of the same name about another metric is another one. */
export interface AlertKey {
  organizationId: string;
  projectId: string;
  projectUid: string;
  name: string;
  metric: string;
}

/** What is recorded of a rule. */
export interface RecordedAlert extends AlertKey {
  /** Percent; null of what has none. */
  threshold: number | null;
  state: AlertState;
  since: Date;
  /** What was measured when the state was recorded, in percent. */
  value: number | null;
}

/** Why an alert has ended. */
export type AlertEnd = "recovered" | "no_data" | "rule_removed";

/**
 * The event of a change of an alert's state: it fires, or has ended. Undefined for others.
 * @param alert as it is after the change; without a state where the rule is no more
 * @param before what it was
 * @param at when it changed
 */
export function alertEvent(
  alert: Omit<RecordedAlert, "state"> & { state: AlertState | undefined },
  before: Pick<RecordedAlert, "state" | "since"> | undefined,
  at: Date,
): NotificationEvent | undefined {
  const { organizationId, projectId, projectUid, name, metric, threshold, value, state } = alert;
  const wasFiring = before?.state === "firing";
  if (wasFiring === (state === "firing")) {
    return undefined;
  }
  const firingSince = wasFiring ? before.since : at;
  return {
    organizationId,
    projectId,
    type: wasFiring ? "alert.resolved" : "alert.firing",
    key: JSON.stringify([projectUid, metric, name, firingSince.toISOString()]),
    occurredAt: at,
    data: {
      alert: name,
      metric,
      ...(threshold === null ? {} : { threshold }),
      ...(value === null || state === undefined ? {} : { value }),
      firing_since: firingSince.toISOString(),
      ...(wasFiring ? { reason: endOf(state) } : {}),
    },
  };
}

function endOf(state: AlertState | undefined): AlertEnd {
  if (state === undefined) {
    return "rule_removed";
  }
  return state === "no_data" ? "no_data" : "recovered";
}
