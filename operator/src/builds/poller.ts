/** Asks Git servers from time to time for what starts builds: a hook's delivery that was lost only delays. */

import type { KubeClient, Store } from "@slipway/controller-runtime";
import { type Build, newBuildId, organizationOfNamespace, type Project } from "@slipway/crds";
import { triggerMode } from "@slipway/git";
import type { BuildTrigger, KnownBuildTrigger } from "@slipway/ledger";
import { type Clock, ConcurrencyLimiter, type Logger, sleep } from "@slipway/process";
import { askForBuild } from "./create-build.ts";
import { nextLook, offsetOf, POLL_MS } from "./poll-times.ts";
import type { OpenProvider } from "./sources.ts";
import { askedBy, beginning, isLater, keyOfSeen, look, type Seen, triggerOf } from "./triggers.ts";

/** What the ledger knows of triggers. Each throws when it cannot be reached. */
export interface TriggerLedger {
  known: (
    project: Pick<BuildTrigger, "organizationId" | "projectUid">,
    triggers: readonly BuildTrigger[],
  ) => Promise<KnownBuildTrigger[]>;
  note: (triggers: readonly BuildTrigger[]) => Promise<void>;
  /** @returns the build that has it; null when it was noted as having been there */
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

/** Polls at once, and those of one organization, which chooses its Git servers. */
const POLLS = { total: 8, perKey: 2 };
const TICK_MS = 2_000;
/** For so long whoever claimed a trigger may be late with its build; a build that is missing later was forgotten on purpose. */
const MENDED_MS = 3_600_000;

export class BuildPoller {
  readonly #options: PollerOptions;
  /** By the project's uid. */
  readonly #state = new Map<string, { nextAt: number; failures: number }>();
  readonly #limiter = new ConcurrencyLimiter(POLLS);
  /** Polls that wait or run, by the project's uid. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(options: PollerOptions) {
    this.#options = options;
  }

  /** Ends when the signal aborts, and with it what is under way. A round does not wait for the one before. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      void this.round(signal);
      await sleep(clock, TICK_MS, signal).catch(() => undefined);
    }
    await Promise.all(this.#underWay.values());
  }

  /** Polls all projects that are due, a few at once that organizations share, and ends with the last of them. Never rejects. */
  async round(signal: AbortSignal): Promise<void> {
    const begun = this.#due().map((project) => {
      const { namespace = "", uid = "" } = project.metadata;
      const poll = this.#limiter
        .run(namespace, () => this.#pollNow(project, signal))
        .finally(() => this.#underWay.delete(uid));
      this.#underWay.set(uid, poll);
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
      if (this.#underWay.has(uid)) {
        return false;
      }
      const state = this.#state.get(uid);
      // After a start, and for a new project: soon, but not all at once.
      if (!state) {
        this.#state.set(uid, { nextAt: now + offsetOf(uid, POLL_MS / 4), failures: 0 });
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
    await this.#lookAt(project, signal);
  }

  async #lookAt(project: Project, signal: AbortSignal): Promise<void> {
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
      log.info({ err: error, project: name, failures }, "a Git server could not be asked for new commits");
    }
    this.#state.set(uid, { nextAt: nextLook(uid, failures, clock.now().getTime()), failures });
  }

  async #poll(project: Project, signal: AbortSignal): Promise<void> {
    const { clock, ledger, open } = this.#options;
    const source = project.spec.source ?? project.spec.github;
    const organizationId = organizationOfNamespace(project.metadata.namespace ?? "");
    if (!source || organizationId === undefined) {
      return;
    }
    const { provider, repository } = await open(project.metadata.namespace, project.spec, signal);
    const seen = await look(source, provider, repository);
    const begun = beginning(project, organizationId);
    const triggers = seen.map((one) => triggerOf(project, organizationId, one));
    const known = new Map(
      (await ledger.known(begun, [begun, ...triggers])).map((one) => [keyOfSeen(one), one]),
    );
    if (!known.has(keyOfSeen(begun))) {
      const later = seen.filter((one) => isLater(one, project, this.#buildsOf(project)));
      await ledger.note(triggers.filter((_trigger, index) => !later.includes(seen[index] as Seen)));
      await ledger.note([begun]);
      if (later.length === 0) {
        return;
      }
    }
    const unwanted: BuildTrigger[] = [];
    for (const one of seen) {
      const before = known.get(keyOfSeen(one));
      const trigger = triggerOf(project, organizationId, one);
      if (before === undefined && !one.wanted) {
        unwanted.push(trigger);
      } else if (before === undefined) {
        const id = await ledger.claim(trigger, newBuildId());
        if (id !== null) {
          await this.#start(project, id, one, signal);
        }
      } else if (before.buildId !== null && clock.now().getTime() - before.seenAt.getTime() < MENDED_MS) {
        const isThere = await ledger.hasBuild(project, organizationId, before.buildId);
        if (!isThere) {
          await this.#start(project, before.buildId, one, signal);
        }
      }
    }
    // They are none later either, when the pattern has changed.
    if (unwanted.length > 0) {
      await ledger.note(unwanted);
    }
  }

  #buildsOf(project: Project): Build[] {
    const { namespace, name } = project.metadata;
    return this.#options.builds.list(namespace).filter(({ spec }) => spec.projectRef.name === name);
  }

  async #start(project: Project, id: string, seen: Seen, signal: AbortSignal): Promise<void> {
    const isNew = await askForBuild(this.#options, [project, id, askedBy(seen)], signal);
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
