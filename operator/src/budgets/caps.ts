/** Pauses projects of organizations whose hard cap is reached, and resumes what it has paused. */

import { isConflict, isNotFound, type KubeClient, type Store } from "@slipway/controller-runtime";
import { fieldManagers, organizationNamespace, type Project } from "@slipway/crds";
import type { Clock, Logger } from "@slipway/process";
import { inTurns } from "../billing/turns.ts";
import { projectResource } from "../resources.ts";
import { type CapAction, capAction, capPatch } from "./cap.ts";
import { type BudgetLedger, eachPage } from "./ports.ts";

export interface CapsOptions {
  ledger: Pick<BudgetLedger, "exhausted">;
  client: KubeClient;
  projects: Store<Project>;
  owns: (namespace: string | undefined) => boolean;
  /** One that throws while it may not be acted on. */
  trustedClock: Clock;
  clock: Clock;
  log: Logger;
  onAction: (action: CapAction) => void;
}

/** Writes at a time, and in one round: at the beginning of a cycle every project that a cap has paused is resumed. */
const CONCURRENCY = 8;
const MAX_WRITES = 400;

interface Due {
  project: Project;
  action: CapAction;
}

export class BudgetCaps {
  readonly #options: CapsOptions;

  constructor(options: CapsOptions) {
    this.#options = options;
  }

  /**
   * One round. Which caps are reached is read first; what follows from it is decided by projects as the cluster has them, so a round that is
   * cut off, or repeated by another process, changes nothing but what is not yet so.
   * @throws what the ledger throws: nothing was written then
   */
  async enforce(signal: AbortSignal): Promise<void> {
    const { ledger, projects, owns, trustedClock, clock } = this.#options;
    if (!projects.hasSynced) {
      return;
    }
    const exhausted = new Set<string | undefined>();
    await eachPage(
      async (page) => {
        const { organizationIds, next } = await ledger.exhausted(trustedClock.now(), page);
        organizationIds.forEach((id) => void exhausted.add(organizationNamespace(id)));
        return { next };
      },
      { clock, signal },
    );
    const due = projects.list().flatMap((project): Due[] => {
      const { namespace } = project.metadata;
      const action = owns(namespace) ? capAction(project, exhausted.has(namespace)) : undefined;
      return action === undefined ? [] : [{ project, action }];
    });
    // What costs comes before what is to be resumed.
    const inOrder = [...Map.groupBy(due, ({ action }) => action)]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([, some]) => inTurns(some, ({ project }) => project.metadata.namespace))
      .slice(0, MAX_WRITES);
    for (let start = 0; start < inOrder.length && !signal.aborted; start += CONCURRENCY) {
      const some = inOrder.slice(start, start + CONCURRENCY);
      await Promise.all(some.map((one) => this.#write(one, signal)));
    }
  }

  async #write({ project, action }: Due, signal: AbortSignal): Promise<void> {
    const { client, projects, log, onAction } = this.#options;
    const { name = "", namespace } = project.metadata;
    const options = { fieldManager: fieldManagers.budget, signal, timeoutMs: WRITE_TIMEOUT_MS };
    try {
      const written = await client.patch<Project>(
        projectResource,
        { name, namespace },
        capPatch(project, action),
        options,
      );
      projects.observe(written);
      onAction(action);
      log.info({ project: name, namespace, action }, "a project follows its organization's budget");
    } catch (error) {
      // Changed or deleted meanwhile: the next round decides by that.
      if (!signal.aborted && !isConflict(error) && !isNotFound(error)) {
        log.warn({ err: error, project: name, namespace, action }, "a budget's cap could not be applied");
      }
    }
  }
}

/** A write that takes longer is repeated in the next round. */
const WRITE_TIMEOUT_MS = 5_000;
