import type { Organization } from "../e2e/support/organization.ts";

/** How often an attacker was answered what: a status with its code, or what became of the connection. */
export type Answers = Readonly<Record<string, number>>;

/** Whom an attack is aimed at, and as whom. Its own organizations: never the victim's. */
export interface Target {
  /** The API, on 127.0.0.1. */
  readonly url: string;
  readonly organizations: readonly [Organization, Organization];
  /** Multiplier of the API's rate limits. */
  readonly rateLimitScale: number;
}

/** What an attack prepared, and how it removes that again. */
export interface Prepared {
  /** Runs until the signal aborts, bounded in count, and gives what it was answered. */
  run(signal: AbortSignal): Promise<Answers>;
  clean?(): Promise<void>;
}

/** One attack. Its process runs at the lowest priority: on a small machine it would otherwise only measure the processors. */
export interface Attack {
  readonly name: string;
  readonly about: string;
  /** For which it runs; where a count bounds it, it may end sooner or later. */
  readonly seconds: number;
  /** Also in the short form, and there concurrently with the others. */
  readonly isShort?: true;
  /** Left out when all attack concurrently: it changes what the others need. */
  readonly isAlone?: true;
  /** Processes that it ends itself, by the beginning of their pod's name; those may begin again. */
  readonly ends?: string;
  /** All that it may be answered, statuses without their codes; any other answer is a finding. */
  readonly expected: readonly string[];
  /** Of these, what it has to be answered at least once: otherwise it attacked nothing, which is a finding, too. */
  readonly required?: readonly string[];
  /** Makes what the attack needs, before anything is measured. */
  prepare(target: Target): Promise<Prepared>;
}

/** Counts answers. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add(answer: string, count = 1): void {
    this.#counts.set(answer, (this.#counts.get(answer) ?? 0) + count);
  }

  answers(): Answers {
    return Object.fromEntries([...this.#counts].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** Answers that an attack does not expect. A status is expected with any code. Pure. */
export function unexpected(answers: Answers, expected: readonly string[]): string[] {
  return Object.keys(answers).filter(
    (answer) => !expected.includes(answer) && !expected.includes(answer.replace(/ [A-Z0-9_]+$/, "")),
  );
}
