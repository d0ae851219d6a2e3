/** Whether a public project's route is in place. Asked on transitions only: a route that serves is not asked again. */

import type { Clock } from "@slipway/kube";
import type { Finding } from "../summarize.ts";
import type { IngressProbe, ProbeResult } from "./ingressProbe.ts";

/** How long answers that may be right are doubted, in milliseconds; see `check`. */
const DOUBT_MS: Readonly<Partial<Record<ProbeResult, number>>> = {
  "unknown-host": 20_000,
  refused: 1_000,
  silent: 10_000,
};

/** How long an ingress may go on leading from a host whose route was taken away, in milliseconds; see `isGone`. */
const GONE_MS = 5_000;

/** What is still missing on a route, and when to look again by ourselves. */
export interface MissingRoute extends Finding {
  retryAfterMs?: number;
}

/** Asks the ingress about hosts and remembers how long it has been denying one. */
export class RouteCheck {
  readonly #probe: IngressProbe | undefined;
  readonly #clock: Clock;
  /** What is doubted and since when, as monotonic time of the first such answer in a row, by project and host. */
  readonly #doubts = new Map<string, { result: ProbeResult; since: number }>();

  /** @param probe without one, a route that is written counts as in place */
  constructor(probe: IngressProbe | undefined, clock: Clock) {
    this.#probe = probe;
    this.#clock = clock;
  }

  /**
   * Asks about a host whose instances are ready. An application may answer 404 in the very words of the ingress: an
   * ingress that says so for 20 s while the route is written and instances are ready has long taken the route in. One that
   * refuses us has the route already, and a second later it has the instances behind it, too. One that is silent for 10 s
   * waits for an application that is slow.
   */
  async check(projectUid: string, host: string): Promise<MissingRoute | undefined> {
    if (!this.#probe) {
      return undefined;
    }
    const key = `${projectUid}/${host}`;
    const result = await this.#probe(host);
    const doubtMs = DOUBT_MS[result];
    if (doubtMs === undefined) {
      this.#doubts.delete(key);
      return MISSING[result];
    }
    const now = this.#clock.monotonic();
    const before = this.#doubts.get(key);
    const since = before?.result === result ? before.since : now;
    if (now - since >= doubtMs) {
      this.#doubts.delete(key);
      return undefined;
    }
    this.#doubts.set(key, { result, since });
    return MISSING[result];
  }

  /**
   * Asks about a host whose route was taken away: whether the ingress has noticed. What it says for five seconds after is
   * not the route's any more, but of an ingress that answers for every host, or not at all.
   */
  async isGone(projectUid: string, host: string): Promise<boolean> {
    if (!this.#probe) {
      return true;
    }
    const key = `${projectUid}/${host} gone`;
    const result = await this.#probe(host);
    const now = this.#clock.monotonic();
    const since = this.#doubts.get(key)?.since ?? now;
    const isGone = result === "unknown-host" || now - since >= GONE_MS;
    if (isGone) {
      this.#doubts.delete(key);
    } else {
      this.#doubts.set(key, { result, since });
    }
    return isGone;
  }

  /** Forgets a project. */
  forget(projectUid: string): void {
    for (const key of this.#doubts.keys()) {
      if (key.startsWith(`${projectUid}/`)) {
        this.#doubts.delete(key);
      }
    }
  }
}

const MISSING: Readonly<Record<ProbeResult, MissingRoute | undefined>> = {
  serving: undefined,
  "unknown-host": {
    reason: "DomainPending",
    message: "The ingress does not know the domain yet.",
    retryAfterMs: 500,
  },
  "no-instance": {
    reason: "DomainPending",
    message: "The ingress has no instance behind the domain yet.",
    retryAfterMs: 500,
  },
  refused: {
    reason: "DomainPending",
    message: "The ingress is taking in the instance behind the domain.",
    retryAfterMs: 500,
  },
  silent: {
    reason: "DomainPending",
    message: "The instance behind the domain does not answer yet.",
    retryAfterMs: 250,
  },
  unreachable: {
    reason: "DomainPending",
    message: "The ingress does not answer.",
    retryAfterMs: 1_000,
  },
};
