/** Pauses projects of organizations whose hard cap is reached, and resumes what it has paused. */

import { isConflict, isNotFound, type KubeClient, type Store } from "@slipway/controller-runtime";
import { fieldManagers, organizationOfNamespace, type Project } from "@slipway/crds";
import type { Clock, Logger } from "@slipway/process";
import { inTurns } from "../billing/turns.ts";
import { Attempts, eachPage } from "../organization-rounds.ts";
import { projectResource } from "../resources.ts";
import { type CapAction, capAction, capPatch } from "./cap.ts";
import type { BudgetLedger } from "./ports.ts";

export interface CapsOptions {
  ledger: Pick<BudgetLedger, "list" | "exhausted">;
  client: KubeClient;
  projects: Store<Project>;
  owns: (namespace: string | undefined) => boolean;
  /** One that throws while it may not be acted on. */
  trustedClock: Clock;
  clock: Clock;
  log: Logger;
  onAction: (action: CapAction) => void;
  onFailure: () => void;
}

/** Writes at a time, and in one round: at the beginning of a cycle every project that a cap has paused is resumed. */
const CONCURRENCY = 8;
const MAX_WRITES = 400;
/** No write of a round begins later than this after the first, in milliseconds. */
const WRITES_MS = 10_000;
/** A write that takes longer is repeated in the next round. */
const WRITE_TIMEOUT_MS = 5_000;

interface Due {
  project: Project;
  organization: string;
  action: CapAction;
}

/** What a round has read: organizations whose cap is reached, and those of which it is not known. */
interface Caps {
  exhausted: ReadonlySet<string>;
  unknown: ReadonlySet<string>;
}

export class BudgetCaps {
  readonly #options: CapsOptions;

  constructor(options: CapsOptions) {
    this.#options = options;
  }

  /**
   * One round. Which caps are reached is read first, and again before an organization's projects are written; what follows from it is decided
   * by projects as the cluster has them, so a round that is cut off, or repeated by another process, changes nothing but what is not yet so.
   * @returns whether every project is as its budget has it
   * @throws what the ledger throws while it is unavailable: nothing was written then
   */
  async enforce(signal: AbortSignal): Promise<boolean> {
    const { projects, clock } = this.#options;
    if (!projects.hasSynced) {
      return false;
    }
    const caps = await this.#read(signal);
    const due = this.#due(caps);
    const confirmed = this.#confirmations();
    let isComplete = caps.unknown.size === 0 && due.length <= MAX_WRITES;
    const startedAt = clock.monotonic();
    for (let start = 0; start < Math.min(due.length, MAX_WRITES); start += CONCURRENCY) {
      if (signal.aborted || clock.monotonic() - startedAt > WRITES_MS) {
        return false;
      }
      const some = due.slice(start, Math.min(start + CONCURRENCY, MAX_WRITES));
      const written = await Promise.all(some.map((one) => this.#write(one, confirmed, signal)));
      isComplete &&= written.every(Boolean);
    }
    return isComplete && !signal.aborted;
  }

  async #read(signal: AbortSignal): Promise<Caps> {
    const { ledger, trustedClock, clock, log, onFailure } = this.#options;
    const exhausted = new Set<string>();
    const unknown = new Set<string>();
    const attempts = new Attempts((err, of) => {
      onFailure();
      log.warn({ err, ...of }, "caps of budgets could not be compared with charges");
    });
    await eachPage(
      (page) => ledger.list(page, { hardCap: true }),
      async (ids) => {
        const read = () => ledger.exhausted(trustedClock.now(), ids);
        const found = await attempts.run(read, { first: ids[0], last: ids.at(-1) });
        const [into, some] = found === undefined ? [unknown, ids] : [exhausted, found];
        some.forEach((id) => void into.add(id));
      },
      { clock, signal },
    );
    return { exhausted, unknown };
  }

  /** What is to be written: what costs before what is to be resumed, and of each organization one after the other. */
  #due({ exhausted, unknown }: Caps): Due[] {
    const { projects, owns } = this.#options;
    const due = projects.list().flatMap((project): Due[] => {
      const { namespace = "" } = project.metadata;
      const organization = owns(namespace) ? organizationOfNamespace(namespace) : undefined;
      if (organization === undefined || unknown.has(organization)) {
        return [];
      }
      const action = capAction(project, exhausted.has(organization));
      return action === undefined ? [] : [{ project, organization, action }];
    });
    const [pauses, resumes] = (["pause", "resume"] as const).map((wanted) =>
      inTurns(
        due.filter(({ action }) => action === wanted),
        ({ organization }) => organization,
      ),
    );
    return [...(pauses ?? []), ...(resumes ?? [])];
  }

  /** Whether what was read of an organization is still so: minutes may have gone by, and budgets changed. One query of each in a round. */
  #confirmations(): (due: Due) => Promise<boolean> {
    const { ledger, trustedClock } = this.#options;
    const read = async (organization: string) =>
      (await ledger.exhausted(trustedClock.now(), [organization])).length > 0;
    const known = new Map<string, Promise<boolean>>();
    return async ({ organization, action }) => {
      const isExhausted = known.get(organization) ?? read(organization);
      known.set(organization, isExhausted);
      return (await isExhausted) === (action === "pause");
    };
  }

  /** @returns whether the project is as it is to be */
  async #write(due: Due, confirmed: (due: Due) => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
    const { client, projects, log, onAction, onFailure } = this.#options;
    const { project, action } = due;
    const { name = "", namespace } = project.metadata;
    const options = { fieldManager: fieldManagers.budget, signal, timeoutMs: WRITE_TIMEOUT_MS };
    try {
      if (!(await confirmed(due))) {
        return true;
      }
      const written = await client.patch<Project>(
        projectResource,
        { name, namespace },
        capPatch(project, action),
        options,
      );
      projects.observe(written);
      onAction(action);
      log.info({ project: name, namespace, action }, "a project follows its organization's budget");
      return true;
    } catch (error) {
      if (isNotFound(error)) {
        return true;
      }
      // Changed meanwhile: the next round decides by that.
      if (!signal.aborted && !isConflict(error)) {
        onFailure();
        log.warn({ err: error, project: name, namespace, action }, "a budget's cap could not be applied");
      }
      return false;
    }
  }
}
