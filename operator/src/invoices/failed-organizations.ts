import { type BackoffOptions, backoffDelay } from "@slipway/controller-runtime";
import type { Clock } from "@slipway/process";

const BACKOFF: BackoffOptions = { baseMs: 60_000, maxMs: 3_600_000 };

/** Organizations whose invoice failed: each is tried again after a minute, and then after twice as long, up to an hour. */
export class FailedOrganizations {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #failures = new Map<string, { attempts: number; retryAt: number }>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Whether its next attempt is still to come. */
  isWaiting(organization: string): boolean {
    return this.#clock.monotonic() < (this.#failures.get(organization)?.retryAt ?? 0);
  }

  failed(organization: string): void {
    const attempts = this.#failures.get(organization)?.attempts ?? 0;
    const retryAt = this.#clock.monotonic() + backoffDelay(attempts, BACKOFF);
    this.#failures.set(organization, { attempts: attempts + 1, retryAt });
  }

  /** Milliseconds until the first of their next attempts; undefined where there is none. */
  nextAttemptMs(): number | undefined {
    const next = Math.min(...[...this.#failures.values()].map(({ retryAt }) => retryAt));
    return Number.isFinite(next) ? Math.max(0, next - this.#clock.monotonic()) : undefined;
  }

  /** Forgets all but these: what another process has issued is not waited for. */
  keepOnly(organizations: ReadonlySet<string>): void {
    for (const organization of this.#failures.keys()) {
      if (!organizations.has(organization)) {
        this.#failures.delete(organization);
      }
    }
  }

  succeeded(organization: string): void {
    this.#failures.delete(organization);
  }
}
