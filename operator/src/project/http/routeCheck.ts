/** Whether a public project's route is in place. Asked on transitions only: a route that serves is not asked again. */

import type { Clock } from "@slipway/kube";
import type { Finding } from "../summarize.ts";
import type { IngressProbe, ProbeResult } from "./ingressProbe.ts";

/** How long an answer that looks like an unknown host is doubted, in milliseconds; see `check`. */
const DOUBT_MS = 20_000;

/** What is still missing on a route, and when to look again by ourselves. */
export interface MissingRoute extends Finding {
  retryAfterMs?: number;
}

/** Asks the ingress about hosts and remembers how long it has been denying one. */
export class RouteCheck {
  readonly #probe: IngressProbe | undefined;
  readonly #clock: Clock;
  /** Monotonic time of the first denial in a row, by project and host. */
  readonly #deniedSince = new Map<string, number>();

  /** @param probe without one, a route that is written counts as in place */
  constructor(probe: IngressProbe | undefined, clock: Clock) {
    this.#probe = probe;
    this.#clock = clock;
  }

  /**
   * Asks about a host whose instances are ready. An application may answer 404 in the very words of the ingress: an
   * ingress that says so for 20 s while the route is written and instances are ready has long taken the route in.
   */
  async check(projectUid: string, host: string): Promise<MissingRoute | undefined> {
    if (!this.#probe) {
      return undefined;
    }
    const key = `${projectUid}/${host}`;
    const result = await this.#probe(host);
    if (result !== "unknown-host") {
      this.#deniedSince.delete(key);
      return MISSING[result];
    }
    const now = this.#clock.monotonic();
    const since = this.#deniedSince.get(key) ?? now;
    if (now - since >= DOUBT_MS) {
      this.#deniedSince.delete(key);
      return undefined;
    }
    this.#deniedSince.set(key, since);
    return MISSING[result];
  }

  /** Forgets a project. */
  forget(projectUid: string): void {
    for (const key of this.#deniedSince.keys()) {
      if (key.startsWith(`${projectUid}/`)) {
        this.#deniedSince.delete(key);
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
  unreachable: {
    reason: "DomainPending",
    message: "The ingress does not answer.",
    retryAfterMs: 5_000,
  },
};
