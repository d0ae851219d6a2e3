/**
 * Checks whether a public project's route is in place, on transitions only: a route that serves is not probed again.
 * Reconciles do not wait for an answer: it is remembered, and the project is reconciled again.
 */

import type { ObjectRef } from "@slipway/controller-runtime";
import { type Clock, ConcurrencyLimiter } from "@slipway/process";
import type { Finding } from "../projects/status.ts";
import { DOUBT_MS, type IngressProbe, type ProbeResult, pauseMs } from "./ingress-probe.ts";

/** How long an ingress may continue to route a host whose route was deleted, in milliseconds; see `isRemoved`. */
const REMOVAL_MS = 5_000;
/** A question that was not checked for this long after it could have ended is abandoned; in milliseconds. */
const ABANDONED_MS = 10_000;
/** An answer reconciles the project. When it is reconciled without one, in milliseconds. */
const UNANSWERED_MS = 5_000;

/** Concurrent probes, apart from the controller's workers: of all, and of one namespace, which is an organization's. */
const PROBES = { total: 32, perKey: 8 };

/** Why a route is not in place yet, and when to check again. */
export interface MissingRoute extends Finding {
  retryAfterMs?: number;
  /** The ingress has not answered about the route yet. */
  unanswered?: true;
}

/** Whether the ingress no longer routes a host; if it does, when to check again. */
export interface RemovedRoute {
  removed: boolean;
  retryAfterMs?: number;
}

/** Whose route it is: a project. */
export interface RouteOwner {
  metadata: { namespace?: string; name: string; uid?: string };
}

type Topic = "serves" | "removed" | "activator";

/** One host that is probed. */
interface Question {
  /** How long the same answer is needed until it is trusted, at most, in milliseconds. */
  windowMs: number;
  /** Monotonic time of the first check, and of the last check or answer. */
  readonly askedAt: number;
  seenAt: number;
  result?: ProbeResult;
  /** Monotonic time of the first answer like the last one in a row, and how many like it came before the last. */
  since: number;
  repeats: number;
  /** The route counts as in place. */
  inPlace: boolean;
  /** Monotonic time of the next probe; undefined while one waits or runs. */
  dueAt?: number;
}

/** Probes hosts at the ingress, a bounded number concurrently, and remembers the answers and since when they are the same. */
export class RouteCheck {
  readonly #probe: IngressProbe | undefined;
  readonly #clock: Clock;
  readonly #probes = new ConcurrencyLimiter(PROBES);
  /** By the project's uid, then by topic and host. */
  readonly #questions = new Map<string, Map<string, Question>>();
  #onAnswer: (owner: ObjectRef) => void = () => {};

  /** @param probe without one, a route that is written counts as in place */
  constructor(probe: IngressProbe | undefined, clock: Clock) {
    this.#probe = probe;
    this.#clock = clock;
  }

  /** Calls the listener with the owner of each answered question. Returns how to unsubscribe. */
  onAnswer(listener: (owner: ObjectRef) => void): () => void {
    this.#onAnswer = listener;
    return () => {
      this.#onAnswer = () => {};
    };
  }

  /**
   * Why the route of a host whose instances are ready is not in place, by the answers of the ingress so far. An application
   * may answer 404 in the very words of the ingress: an ingress that answers so for 20 s while the route is written and
   * instances are ready has loaded the route long ago. One that refuses the probe has the route already, and within
   * five seconds it has the instances behind it, too. One that is silent for 10 s waits for an application that is slow.
   * @param reset earlier answers do not count: the route has just been written
   */
  check(owner: RouteOwner, host: string, reset = false): MissingRoute | undefined {
    if (!this.#probe) {
      return undefined;
    }
    const question = this.#question(owner, "serves", host, reset);
    if (question.inPlace) {
      return undefined;
    }
    const retryAfterMs = this.#probeWhenDue(owner, "serves", host, question);
    const { result } = question;
    return result === undefined
      ? { reason: "DomainPending", message: "The ingress is being asked.", retryAfterMs, unanswered: true }
      : { reason: "DomainPending", message: MISSING[result], retryAfterMs };
  }

  /** Whether a route is being checked that has not been found in place yet. */
  isOpen({ metadata: { uid = "" } }: RouteOwner, host: string): boolean {
    return this.#questions.get(uid)?.get(`serves ${host}`)?.inPlace === false;
  }

  /**
   * Whether the ingress has noticed that a host's route was deleted. An ingress that still answers after five seconds
   * answers for every host, and one that does not answer never will.
   */
  isRemoved(owner: RouteOwner, host: string): RemovedRoute {
    if (!this.#probe) {
      return { removed: true };
    }
    const question = this.#question(owner, "removed", host);
    const leftMs = question.askedAt + REMOVAL_MS - this.#clock.monotonic();
    if (question.result === "unknown-host" || leftMs <= 0) {
      this.#questions.get(owner.metadata.uid ?? "")?.delete(`removed ${host}`);
      return { removed: true };
    }
    const retryAfterMs = this.#probeWhenDue(owner, "removed", host, question);
    return { removed: false, retryAfterMs: Math.min(retryAfterMs, leftMs) };
  }

  /** Whether the ingress, by its last answer, sends requests for a host there, whose route leads to the activator. It is asked as long as this is called: it may be several processes. */
  isAtActivator(owner: RouteOwner, host: string): boolean {
    if (!this.#probe) {
      return true;
    }
    const question = this.#question(owner, "activator", host);
    this.#probeWhenDue(owner, "activator", host, question);
    return question.inPlace;
  }

  /** Forgets the answers about hosts that are not checked any more: they do not count when the hosts are checked again. */
  retain({ metadata: { uid = "" } }: RouteOwner, topic: Topic, hosts: ReadonlySet<string>): void {
    const questions = this.#questions.get(uid);
    for (const key of questions?.keys() ?? []) {
      if (key.startsWith(`${topic} `) && !hosts.has(key.slice(topic.length + 1))) {
        questions?.delete(key);
      }
    }
    if (questions?.size === 0) {
      this.#questions.delete(uid);
    }
  }

  /** Forgets a project. */
  forget({ metadata: { uid = "" } }: RouteOwner): void {
    this.#questions.delete(uid);
  }

  #question({ metadata: { uid = "" } }: RouteOwner, topic: Topic, host: string, reset = false): Question {
    const now = this.#clock.monotonic();
    const questions = this.#questions.get(uid) ?? new Map<string, Question>();
    this.#questions.set(uid, questions);
    const key = `${topic} ${host}`;
    const before = questions.get(key);
    if (before && !reset && !isAbandoned(before, now)) {
      before.seenAt = now;
      return before;
    }
    const windowMs = topic === "removed" ? REMOVAL_MS : 0;
    const question = {
      windowMs,
      askedAt: now,
      seenAt: now,
      since: now,
      repeats: 0,
      inPlace: false,
      dueAt: now,
    };
    questions.set(key, question);
    return question;
  }

  /** Returns when to check again, in milliseconds. */
  #probeWhenDue({ metadata }: RouteOwner, topic: Topic, host: string, question: Question): number {
    const leftMs = (question.dueAt ?? 0) - this.#clock.monotonic();
    if (question.dueAt === undefined || leftMs > 0) {
      return question.dueAt === undefined ? UNANSWERED_MS : leftMs;
    }
    question.dueAt = undefined;
    const { namespace, name, uid = "" } = metadata;
    const isWanted = () => this.#questions.get(uid)?.get(`${topic} ${host}`) === question;
    // Never rejects.
    void this.#probes.run(namespace ?? "", async () => {
      const result = isWanted() ? await this.#query(host) : undefined;
      if (result !== undefined && isWanted()) {
        this.#record(question, topic, result);
        this.#onAnswer({ namespace, name });
      }
    });
    return UNANSWERED_MS;
  }

  async #query(host: string): Promise<ProbeResult> {
    try {
      return (await this.#probe?.(host)) ?? "unreachable";
    } catch {
      return "unreachable";
    }
  }

  #record(question: Question, topic: Topic, result: ProbeResult): void {
    const now = this.#clock.monotonic();
    const again = question.result === result;
    const since = again ? question.since : now;
    const repeats = again ? question.repeats + 1 : 0;
    const doubtMs = DOUBT_MS[result];
    const leftMs = since + (doubtMs ?? Number.POSITIVE_INFINITY) - now;
    question.result = result;
    question.seenAt = now;
    question.since = since;
    question.repeats = repeats;
    // An ingress that does not answer has not led the host elsewhere.
    const isUnanswered = result === "silent" || result === "unreachable";
    const isStill = topic === "activator" && question.inPlace && isUnanswered;
    question.inPlace = isStill || isInPlace(topic, result, leftMs <= 0);
    question.windowMs = topic === "removed" ? REMOVAL_MS : (doubtMs ?? 0);
    question.dueAt =
      now + (topic === "serves" ? Math.min(pauseMs(result, repeats), leftMs) : pauseMs(result, repeats));
  }
}

function isInPlace(topic: Topic, result: ProbeResult, isPast: boolean): boolean {
  switch (topic) {
    case "serves":
      return result === "serving" || result === "activator" || isPast;
    case "activator":
      return result === "activator";
    case "removed":
      return false;
  }
}

/** One that is due only later than its window is not abandoned before. */
function isAbandoned({ inPlace, seenAt, windowMs, dueAt }: Question, now: number): boolean {
  return !inPlace && dueAt !== undefined && now - Math.max(seenAt + windowMs, dueAt) > ABANDONED_MS;
}

const MISSING: Readonly<Record<ProbeResult, string>> = {
  serving: "",
  activator: "",
  "unknown-host": "The ingress does not know the domain yet.",
  "no-instance": "The ingress has no instance behind the domain yet.",
  refused: "The ingress is taking in the instance behind the domain.",
  silent: "The instance behind the domain does not answer yet.",
  unreachable: "The ingress does not answer.",
};
