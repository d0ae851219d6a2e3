/** Polls Git servers for new commits, tags and releases: a lost hook delivery only delays a build. */

import { createHash } from "node:crypto";
import type { KubeClient, Store } from "@slipway/controller-runtime";
import { type Build, newBuildId, organizationOfNamespace, type Project } from "@slipway/crds";
import { triggerMode } from "@slipway/git";
import type { BuildTrigger, KnownBuildTrigger } from "@slipway/ledger";
import { type Clock, ConcurrencyLimiter, type Logger, sleep } from "@slipway/process";
import type { OpenProvider } from "./sources.ts";
import {
  baselineTrigger,
  buildRequestOf,
  createBuild,
  type GitTrigger,
  isNewCommit,
  ledgerTrigger,
  listTriggers,
  triggerKey,
} from "./triggers.ts";

/** Triggers in the ledger. Each method throws when it cannot be reached. */
export interface TriggerLedger {
  known: (
    project: Pick<BuildTrigger, "organizationId" | "projectUid">,
    triggers: readonly BuildTrigger[],
  ) => Promise<KnownBuildTrigger[]>;
  record: (triggers: readonly BuildTrigger[]) => Promise<void>;
  /** @returns the build that the trigger belongs to; null when it was recorded without one */
  claim: (trigger: BuildTrigger, buildId: string) => Promise<string | null>;
  hasBuild: (project: Project, organizationId: string, buildId: string) => Promise<boolean>;
}

export interface PollerOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  projects: Store<Project>;
  builds: Store<Build>;
  open: OpenProvider;
  ledger: TriggerLedger;
}

/** Concurrent polls, in total and of one organization, which chooses its Git servers. */
const POLL_CONCURRENCY = { total: 8, perKey: 2 };
const TICK_MS = 2_000;
/** A claimed trigger without its build is retried for so long; a build that is missing later was deleted on purpose. */
const MISSING_BUILD_GRACE_MS = 3_600_000;

export class BuildPoller {
  readonly #options: PollerOptions;
  /** By the project's uid. */
  readonly #state = new Map<string, { nextAt: number; failures: number }>();
  readonly #limiter = new ConcurrencyLimiter(POLL_CONCURRENCY);
  /** Polls that wait or run, by the project's uid. */
  readonly #inFlight = new Map<string, Promise<void>>();

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** Runs until the signal aborts, which also ends polls in flight. Rounds do not wait for each other. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      void this.round(signal);
      await sleep(clock, TICK_MS, signal).catch(() => undefined);
    }
    await Promise.all(this.#inFlight.values());
  }

  /** Polls all projects that are due, with limited concurrency, and ends with the last of them. Never rejects. */
  async round(signal: AbortSignal): Promise<void> {
    const begun = this.#due().map((project) => {
      const { namespace = "", uid = "" } = project.metadata;
      const poll = this.#limiter
        .run(namespace, () => this.#pollNow(project, signal))
        .finally(() => this.#inFlight.delete(uid));
      this.#inFlight.set(uid, poll);
      return poll;
    });
    await Promise.all(begun);
  }

  #due(): Project[] {
    const { clock, projects } = this.#options;
    if (!projects.hasSynced) {
      return [];
    }
    const now = clock.now().getTime();
    const polled = projects.list().filter(isPolled);
    const uids = new Set(polled.map(({ metadata }) => metadata.uid));
    for (const uid of this.#state.keys()) {
      if (!uids.has(uid)) {
        this.#state.delete(uid);
      }
    }
    return polled.filter(({ metadata: { uid = "" } }) => {
      if (this.#inFlight.has(uid)) {
        return false;
      }
      const state = this.#state.get(uid);
      // After a start, and for a new project: within a quarter of the interval, spread out.
      if (!state) {
        this.#state.set(uid, { nextAt: now + pollOffset(uid, POLL_INTERVAL_MS / 4), failures: 0 });
      }
      return state !== undefined && state.nextAt <= now;
    });
  }

  /** It may have been changed or deleted while its poll waited. */
  async #pollNow({ metadata: { namespace, name, uid } }: Project, signal: AbortSignal): Promise<void> {
    const project = this.#options.projects.get(namespace, name);
    if (signal.aborted || !project || project.metadata.uid !== uid || !isPolled(project)) {
      return;
    }
    await this.#pollProject(project, signal);
  }

  async #pollProject(project: Project, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const { uid = "", name } = project.metadata;
    let failures = 0;
    try {
      await this.#poll(project, signal);
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      failures = (this.#state.get(uid)?.failures ?? 0) + 1;
      log.info({ err: error, project: name, failures }, "a Git server could not be polled for new commits");
    }
    this.#state.set(uid, { nextAt: nextPollAt(uid, failures, clock.now().getTime()), failures });
  }

  async #poll(project: Project, signal: AbortSignal): Promise<void> {
    const { clock, ledger, open } = this.#options;
    const source = project.spec.source ?? project.spec.github;
    const organizationId = organizationOfNamespace(project.metadata.namespace ?? "");
    if (!source || organizationId === undefined) {
      return;
    }
    const { provider, repository } = await open(project.metadata.namespace, project.spec, signal);
    // The oldest first: the build that is requested last supersedes those before it.
    const seen = (await listTriggers(source, provider, repository)).toReversed();
    const begun = baselineTrigger(project, organizationId);
    const triggers = seen.map((one) => ledgerTrigger(project, organizationId, one));
    const known = new Map(
      (await ledger.known(begun, [begun, ...triggers])).map((one) => [triggerKey(one), one]),
    );
    if (!known.has(triggerKey(begun))) {
      const later = seen.filter((one) => isNewCommit(one, project, this.#buildsOf(project)));
      await ledger.record(triggers.filter((_trigger, index) => !later.includes(seen[index] as GitTrigger)));
      await ledger.record([begun]);
      if (later.length === 0) {
        return;
      }
    }
    const unwanted: BuildTrigger[] = [];
    for (const one of seen) {
      const before = known.get(triggerKey(one));
      const trigger = ledgerTrigger(project, organizationId, one);
      if (before === undefined && !one.isWanted) {
        unwanted.push(trigger);
      } else if (before === undefined) {
        const id = await ledger.claim(trigger, newBuildId());
        if (id !== null) {
          await this.#start(project, id, one, signal);
        }
      } else if (
        before.buildId !== null &&
        clock.now().getTime() - before.seenAt.getTime() < MISSING_BUILD_GRACE_MS
      ) {
        const isThere = await ledger.hasBuild(project, organizationId, before.buildId);
        if (!isThere) {
          await this.#start(project, before.buildId, one, signal);
        }
      }
    }
    // Recorded, so that they do not start builds when the pattern changes.
    if (unwanted.length > 0) {
      await ledger.record(unwanted);
    }
  }

  #buildsOf(project: Project): Build[] {
    const { namespace, name } = project.metadata;
    return this.#options.builds.list(namespace).filter(({ spec }) => spec.projectRef.name === name);
  }

  async #start(project: Project, id: string, seen: GitTrigger, signal: AbortSignal): Promise<void> {
    const isNew = await createBuild(this.#options, [project, id, buildRequestOf(seen)], signal);
    const { trigger, ref } = seen;
    const { log } = this.#options;
    if (isNew) {
      log.info({ project: project.metadata.name, build: id, trigger, ref }, "a poll has started a build");
    }
  }
}

function isPolled({ metadata, spec }: Project): boolean {
  const source = spec.source ?? spec.github;
  return metadata.deletionTimestamp === undefined && source !== undefined && triggerMode(source) !== "manual";
}

/** Between two polls while they succeed; hooks report sooner. */
export const POLL_INTERVAL_MS = 60_000;
/** The longest pause after failures. */
export const MAX_BACKOFF_MS = 1_800_000;

/** Offset of a project's polls in the period: stable, and spread over all of it. @returns 0 to `period` */
export function pollOffset(uid: string, period: number): number {
  return createHash("sha256").update(uid).digest().readUInt32BE(0) % period;
}

/** @param failures consecutive failed polls */
export function nextPollAt(uid: string, failures: number, now: number): number {
  if (failures > 0) {
    return now + Math.min(MAX_BACKOFF_MS, POLL_INTERVAL_MS * 2 ** Math.min(failures, 10));
  }
  const offset = pollOffset(uid, POLL_INTERVAL_MS);
  return now - ((now - offset) % POLL_INTERVAL_MS) + POLL_INTERVAL_MS;
}
