import type { AccessEvent } from "../event.ts";

/** What routes and user agents are called that came after a minute had too many of them. */
export const OTHER = "(other)";

/** Routes and user agents that are distinguished in one minute of one project. */
export const MAX_ROUTES_PER_MINUTE = 200;
export const MAX_AGENTS_PER_MINUTE = 100;

const MINUTE_MS = 60_000;

/** What has been distinguished in a minute. */
interface Seen {
  routes: Set<string>;
  agents: Set<string>;
}

/**
 * Keeps a client that requests ever new paths, with ever new user agents, from filling the store: the first ones of each project
 * and minute keep theirs, the others become {@link OTHER}. Holds the newest minutes in memory.
 */
export class MinuteBounds {
  readonly #minutes = new Map<string, Seen>();
  readonly #held: number;

  /** @param held projects' minutes that are remembered */
  constructor(held = 10_000) {
    this.#held = held;
  }

  /** The event, or one like it whose route or user agent has become {@link OTHER}. */
  bound(event: AccessEvent): AccessEvent {
    const seen = this.#of(event);
    const route = within(seen.routes, event.route, MAX_ROUTES_PER_MINUTE);
    const userAgent = within(seen.agents, event.userAgent, MAX_AGENTS_PER_MINUTE);
    return route === event.route && userAgent === event.userAgent ? event : { ...event, route, userAgent };
  }

  #of({ organization, project, at }: AccessEvent): Seen {
    const key = `${organization}/${project}/${Math.floor(at / MINUTE_MS)}`;
    const known = this.#minutes.get(key);
    if (known) {
      return known;
    }
    const seen: Seen = { routes: new Set(), agents: new Set() };
    this.#minutes.set(key, seen);
    if (this.#minutes.size > this.#held) {
      const [oldest = ""] = this.#minutes.keys();
      this.#minutes.delete(oldest);
    }
    return seen;
  }
}

function within(seen: Set<string>, value: string, most: number): string {
  if (seen.has(value)) {
    return value;
  }
  if (seen.size >= most) {
    return OTHER;
  }
  seen.add(value);
  return value;
}
