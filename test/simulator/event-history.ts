/** The latest events of each project, by which a violation can be understood. */

/** Entries kept of each project. */
const MAX_ENTRIES = 80;

export class EventHistory {
  readonly #now: () => number;
  readonly #entries = new Map<string, { at: number; text: () => string }[]>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** @param text called only when the history is read: what it describes must not change */
  record(project: string, text: () => string): void {
    const entries = this.#entries.get(project) ?? [];
    entries.push({ at: this.#now(), text });
    if (entries.length > 2 * MAX_ENTRIES) {
      entries.splice(0, MAX_ENTRIES);
    }
    this.#entries.set(project, entries);
  }

  /** The last entries of a project, oldest first. */
  of(project: string): string[] {
    return (this.#entries.get(project) ?? [])
      .slice(-MAX_ENTRIES)
      .map(({ at, text }) => `${new Date(at).toISOString().slice(5, 23)} ${text()}`);
  }
}
