/** Evaluates the rules of projects' alerts, and has the ledger record how their states change. */

import type { ProjectsSelection } from "@slipway/analytics";
import { organizationNamespace, type Project } from "@slipway/crds";
import type { AlertChange, RecordedAlert } from "@slipway/ledger";
import type { Logger } from "@slipway/process";
import type { AlertMetrics } from "./metrics.ts";
import { STALE_SECONDS } from "./observe.ts";
import { type AlertLedger, type AlertStore, failureOf } from "./ports.ts";
import {
  isHeld,
  keyOf,
  type Measured,
  measuredBy,
  NOTHING,
  needs,
  observe,
  requestsLookBackSeconds,
  textOf,
  usageLookBackSeconds,
  type WatchedProject,
  watched,
} from "./rules.ts";
import { nextState } from "./transition.ts";
import { Turns } from "./turns.ts";

/** How long the store may be queried in one evaluation: what is left waits for the next. */
const STORE_LIMIT_MS = 20_000;
/** A project that was not measured for longer is measured from the beginning: what it has sent meanwhile may be late. */
const LONGEST_PAUSE_MS = 120_000;
/** What a query had at least when it was too much: one that was cut short before may have needed no more than others. */
const FAIR_MS = 10_000;

export interface EvaluatorOptions {
  ledger: AlertLedger;
  /** Undefined where nothing is measured: what was before is not known any more. */
  store: AlertStore | undefined;
  projects: { readonly hasSynced: boolean; list(): readonly Project[] };
  /** Whether this process evaluates the projects of a namespace. */
  owns: (namespace: string) => boolean;
  clock: { now(): Date; monotonic(): number };
  metrics: AlertMetrics;
  log: Logger;
  turns?: Turns;
}

/** One for each time that a process leads: the ledger has the states, and what this one knows of them is read from there. */
export class AlertEvaluator {
  readonly #options: EvaluatorOptions;
  readonly #turns: Turns;
  /** By rule, what the ledger has; undefined until it was read, and after another process has changed something. */
  #states: Map<string, RecordedAlert> | undefined;
  /** Rules that the last evaluation did not find, while their states are there. */
  #absent: ReadonlySet<string> = new Set();
  /** By uid, since when the store has answered about a project without a long pause, and when it did last, by the monotonic clock. */
  readonly #answered = new Map<string, { since: number; last: number }>();

  constructor(options: EvaluatorOptions) {
    this.#options = options;
    this.#turns = options.turns ?? new Turns();
  }

  /**
   * Evaluates every rule once.
   * @returns whether all of them were, and what has changed is recorded
   * @throws whatever the ledger throws: nothing is recorded then, and the next evaluation finds the same
   */
  async evaluate(signal: AbortSignal): Promise<boolean> {
    const { projects, owns, metrics, clock } = this.#options;
    if (!projects.hasSynced) {
      return false;
    }
    const found = projects.list().flatMap((one) => watched(one) ?? []);
    const own = found.filter(({ organization }) => owns(organizationNamespace(organization)));
    const states = await this.#read();
    const observedAt = clock.now();
    const removed = this.#removed(own, states);
    const { measuredOf, isComplete } = await this.#measure(own, signal);
    if (signal.aborted) {
      // Another process leads, and has begun to observe.
      return false;
    }
    const changes = [...removed, ...this.#changes(own, states, measuredOf)];
    const isRecorded = await this.#record(changes, observedAt);
    metrics.rules.set(own.reduce((sum, { rules }) => sum + rules.length, 0));
    metrics.firing.set(
      [...(this.#states ?? states).values()].filter(({ state }) => state === "firing").length,
    );
    return isComplete && isRecorded;
  }

  async #read(): Promise<Map<string, RecordedAlert>> {
    if (this.#states === undefined) {
      const { ledger, owns } = this.#options;
      const own = (await ledger.list()).filter((one) => owns(organizationNamespace(one.organizationId)));
      this.#states = new Map(own.map((one) => [textOf(one), one]));
    }
    return this.#states;
  }

  /** States of rules that are no more. In two evaluations: a cache that is read just after an election may be behind. */
  #removed(projects: readonly WatchedProject[], states: ReadonlyMap<string, RecordedAlert>): AlertChange[] {
    const present = new Set(projects.flatMap((one) => one.rules.map((rule) => textOf(keyOf(one, rule)))));
    const before = this.#absent;
    const absent = [...states].filter(([text]) => !present.has(text));
    this.#absent = new Set(absent.map(([text]) => text));
    return absent
      .filter(([text]) => before.has(text))
      .map(([, recorded]) => ({ ...recorded, before: recorded, state: undefined }));
  }

  #changes(
    projects: readonly WatchedProject[],
    states: ReadonlyMap<string, RecordedAlert>,
    measuredOf: (project: WatchedProject) => Measured | undefined,
  ): AlertChange[] {
    const { clock, store } = this.#options;
    const now = Math.floor(clock.now().getTime() / 1_000);
    return projects.flatMap((project) => {
      const answered = clock.monotonic() - (this.#answered.get(project.uid)?.since ?? clock.monotonic());
      return project.rules.flatMap((rule): AlertChange[] => {
        const observed = observe(project, rule, measuredOf(project), now);
        const key = keyOf(project, rule);
        const before = states.get(textOf(key));
        const isMissing = store === undefined || answered >= STALE_SECONDS * 1_000;
        const isNew = before !== undefined && isHeld(rule, before.since, now);
        const state = observed && nextState(before?.state, observed.verdict, isMissing, isNew);
        return state === undefined || observed === undefined
          ? []
          : [{ ...key, before, state, threshold: rule.threshold ?? null, value: observed.value }];
      });
    });
  }

  /** What is measured of projects, in groups of many, until the time is over; of others it is not known. */
  async #measure(
    projects: readonly WatchedProject[],
    signal: AbortSignal,
  ): Promise<{ measuredOf: (project: WatchedProject) => Measured | undefined; isComplete: boolean }> {
    const { store, clock } = this.#options;
    const measured = new Map<string, Measured>();
    const measuredOf = ({ uid }: WatchedProject) => measured.get(uid);
    const needing = projects.filter((one) => needs(one).usage || needs(one).requests);
    if (store === undefined) {
      return { measuredOf: () => NOTHING, isComplete: true };
    }
    if (needing.length === 0) {
      return { measuredOf, isComplete: true };
    }
    const begin = clock.monotonic();
    const within = AbortSignal.any([signal, AbortSignal.timeout(STORE_LIMIT_MS)]);
    let waiting = this.#turns.begin(needing);
    let isOver = false;
    while (waiting.length > 0 && !within.aborted && !isOver) {
      const group = this.#turns.next(waiting);
      waiting = waiting.slice(group.length);
      const hadTime = STORE_LIMIT_MS - (clock.monotonic() - begin) >= FAIR_MS;
      const answer = await this.#query(store, group, within);
      if (typeof answer === "function") {
        this.#turns.measured(group);
        for (const project of group) {
          measured.set(project.uid, answer(project));
        }
      } else {
        isOver = answer !== "too much";
        if (answer === "away") {
          this.#turns.tried(group);
        } else if (!within.aborted || hadTime) {
          this.#turns.failed(group);
        }
      }
    }
    this.#remember(needing, measured);
    return { measuredOf, isComplete: measured.size === needing.length };
  }

  /** Keeps since when projects are measured; others are forgotten. */
  #remember(projects: readonly WatchedProject[], measured: ReadonlyMap<string, Measured>): void {
    const now = this.#options.clock.monotonic();
    const present = new Set(projects.map(({ uid }) => uid));
    for (const uid of this.#answered.keys()) {
      if (!present.has(uid)) {
        this.#answered.delete(uid);
      }
    }
    for (const uid of measured.keys()) {
      const before = this.#answered.get(uid);
      const isOn = before !== undefined && now - before.last <= LONGEST_PAUSE_MS;
      this.#answered.set(uid, { since: isOn ? before.since : now, last: now });
    }
  }

  async #query(
    store: AlertStore,
    group: readonly WatchedProject[],
    signal: AbortSignal,
  ): Promise<((project: WatchedProject) => Measured) | ReturnType<typeof failureOf>> {
    const now = Math.floor(this.#options.clock.now().getTime() / 1_000);
    const lookBack = { usage: usageLookBackSeconds, requests: requestsLookBackSeconds };
    const selectionOf = (of: "usage" | "requests"): ProjectsSelection => {
      const those = group.filter((one) => needs(one)[of]);
      const projects = those.map(({ organization, id }) => ({ organization, project: id }));
      return { projects, from: now - lookBack[of](those), to: now + 1 };
    };
    const [usage, requests] = [selectionOf("usage"), selectionOf("requests")];
    try {
      const [used, answered] = await Promise.all([
        usage.projects.length === 0 ? [] : store.usage(usage, signal),
        requests.projects.length === 0 ? [] : store.requests(requests, signal),
      ]);
      return measuredBy(used, answered);
    } catch (error) {
      if (!signal.aborted) {
        this.#options.log.warn({ err: error, projects: group.length }, "alerts could not be measured");
      }
      return signal.aborted ? "too much" : failureOf(error);
    }
  }

  /** @returns whether all of them were */
  async #record(changes: readonly AlertChange[], observedAt: Date): Promise<boolean> {
    if (changes.length === 0) {
      return true;
    }
    const { ledger, metrics, log } = this.#options;
    const states = this.#states;
    // Until it is known what the ledger has made of it.
    this.#states = undefined;
    const { recorded, changed } = await ledger.change(changes, observedAt);
    if (changed !== changes.length || states === undefined) {
      log.warn({ changes: changes.length, changed }, "states of alerts were changed meanwhile, or are late");
      return false;
    }
    for (const { state = "removed", projectId, name } of changes) {
      metrics.changes.inc({ state });
      log.info({ project: projectId, alert: name, state }, "the state of an alert changes");
    }
    for (const one of changes.filter(({ state }) => state === undefined)) {
      states.delete(textOf(one));
    }
    for (const one of recorded) {
      states.set(textOf(one), one);
    }
    this.#states = states;
    return true;
  }
}
