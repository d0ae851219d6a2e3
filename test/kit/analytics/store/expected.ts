import type { AccessEvent, Selection } from "@slipway/analytics";

/** The expected answers of the store, computed in the plainest way from the events themselves. */

export function selected(
  events: readonly AccessEvent[],
  { organization, project, window, filter }: Selection,
) {
  return events.filter(
    (event) =>
      event.organization === organization &&
      event.project === project &&
      event.at >= window.from &&
      event.at < window.to &&
      (filter.statusCode === undefined || event.status === filter.statusCode) &&
      (filter.statusClass === undefined || Math.floor(event.status / 100) === filter.statusClass) &&
      (filter.sourceIp === undefined || event.sourceIp === filter.sourceIp) &&
      (filter.path === undefined || event.path === filter.path || event.route === filter.path),
  );
}

const sum = (numbers: number[]): number => numbers.reduce((total, one) => total + one, 0);

export function counts(events: readonly AccessEvent[]) {
  return {
    requests: events.length,
    bytesReceived: sum(events.map(({ bytesReceived }) => bytesReceived)),
    bytesSent: sum(events.map(({ bytesSent }) => bytesSent)),
    avgLatencyMs:
      events.length === 0
        ? null
        : Math.round(sum(events.map(({ latencyUs }) => latencyUs)) / events.length) / 1000,
  };
}

/** Milliseconds; by nearest rank. */
export function p95(events: readonly AccessEvent[]): number | null {
  const sorted = events.map(({ latencyUs }) => latencyUs).sort((one, other) => one - other);
  const found = sorted[Math.ceil(0.95 * sorted.length) - 1];
  return found === undefined ? null : found / 1000;
}

/** Events by a text of theirs, the longest lists first, then by the text's bytes. */
export function groups(events: readonly AccessEvent[], of: (event: AccessEvent) => string) {
  const found = new Map<string, AccessEvent[]>();
  for (const event of events) {
    const key = of(event);
    const list = found.get(key) ?? [];
    list.push(event);
    found.set(key, list);
  }
  return [...found].sort(
    ([one, those], [other, these]) =>
      these.length - those.length || Buffer.compare(Buffer.from(one), Buffer.from(other)),
  );
}

export function shares(events: readonly AccessEvent[], of: (event: AccessEvent) => string) {
  return Object.fromEntries(groups(events, of).map(([key, list]) => [key, list.length]));
}
