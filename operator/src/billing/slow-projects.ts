/** Failures in a row after which a project for which the ledger takes too long is counted. */
const COUNTED_FROM = 3;

/**
 * Projects for which the ledger takes too long. One failure may come of a lock that a backup or another process holds; only what repeats is the
 * project's own.
 */
export class SlowProjects {
  /** Failures in a row, by uid. */
  readonly #failures = new Map<string, number>();

  /** @returns whether it is to be counted */
  failed(projectUid: string): boolean {
    const failures = (this.#failures.get(projectUid) ?? 0) + 1;
    this.#failures.set(projectUid, failures);
    return failures >= COUNTED_FROM;
  }

  succeeded(projectUid: string): void {
    this.#failures.delete(projectUid);
  }
}
