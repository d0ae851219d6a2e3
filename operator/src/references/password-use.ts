/** Whether something may still start, or runs, with a password that it got by reference. */

import type { KubeClient, KubernetesObject, Store } from "@slipway/controller-runtime";
import { labels, type Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { changedAt } from "./garbage.ts";
import { BY_PASSWORD, passwordKey } from "./password-labels.ts";
import { secretsInUse, secretsOfStarted } from "./secrets-in-use.ts";

/** For how long a password that was found to be used counts as used: its database may be reconciled every second. */
export const USED_MS = 15_000;

/** For how long one that was found not to be used counts as that, while the same Secrets have it. */
export const UNUSED_MS = 5_000;

/**
 * For how long a password counts as used after a dependant that has it was given something else, or it itself: a controller that has not seen the change, or a
 * first deployment, may create something from it.
 */
export const CHANGED_MS = 60_000;

/** Passwords of a database that are remembered: the one that is kept, and one that is being renewed. */
const REMEMBERED = 2;

export interface PasswordUseDependencies {
  client: KubeClient;
  clock: Clock;
  stores: { projects: Store<Project>; secrets: Store };
}

/** A project, and the names of its Secrets with a password. */
interface Dependant {
  project: Project;
  secrets: ReadonlySet<string>;
}

interface Found {
  isUsed: boolean;
  /** In milliseconds. */
  at: number;
  /** Names of the Secrets with the password. */
  secrets: string;
}

export class PasswordUse {
  readonly #deps: PasswordUseDependencies;
  /** By uid of the database, and by hash: what was found, and when. */
  readonly #seen = new Map<string, Map<string, Found>>();

  constructor(deps: PasswordUseDependencies) {
    this.#deps = deps;
  }

  forget(uid: string): void {
    this.#seen.delete(uid);
  }

  /**
   * Whether an instance, run or pre-deploy command of any project has a password of a database among its variables, or may be started with
   * it. That none has is read live; a dependant that is still to be rolled says so in its status. Of a paused one, what still runs counts: the
   * references are resolved again when it is resumed.
   * @param hash keyed hash of the password
   * @throws KubeError
   */
  async isUsed(database: Project, hash: string, signal: AbortSignal): Promise<boolean> {
    const { namespace = "", name, uid = "" } = database.metadata;
    const having = this.#deps.stores.secrets.byIndex(BY_PASSWORD, passwordKey(namespace, name, hash));
    if (having.length === 0) {
      return false;
    }
    const now = this.#deps.clock.now().getTime();
    const secrets = having
      .map(({ metadata }) => metadata?.name)
      .sort()
      .join();
    const seen = this.#seen.get(uid) ?? new Map<string, Found>();
    const found = seen.get(hash);
    if (found && now >= found.at && isValid(found, secrets, now)) {
      return found.isUsed;
    }
    seen.delete(hash);
    const isUsed = await this.#isUsedNow(this.#dependants(namespace, having), now, signal);
    seen.set(hash, { isUsed, at: now, secrets });
    this.#seen.set(uid, new Map([...seen].slice(-REMEMBERED)));
    return isUsed;
  }

  async #isUsedNow(dependants: readonly Dependant[], now: number, signal: AbortSignal): Promise<boolean> {
    const { client, stores } = this.#deps;
    const isRecent = ({ project }: Dependant) => now < changedAt(project, stores.secrets) + CHANGED_MS;
    if (dependants.some((one) => isStillNamed(one) || isRecent(one))) {
      return true;
    }
    // Those that are being rolled first: the others have been, more likely.
    for (const { project, secrets } of dependants.toSorted((a, b) => rollsFirst(a) - rollsFirst(b))) {
      const read = project.spec.paused ? secretsOfStarted : secretsInUse;
      const used = await read(project, client, signal);
      if ([...secrets].some((secret) => used.has(secret))) {
        return true;
      }
    }
    return false;
  }

  #dependants(namespace: string, secrets: readonly KubernetesObject[]): Dependant[] {
    const byProject = Map.groupBy(secrets, ({ metadata }) => metadata?.labels?.[labels.project] ?? "");
    return [...byProject].flatMap(([id, own]) => {
      const project = this.#deps.stores.projects.get(namespace, id);
      const names = own.map(({ metadata }) => metadata?.name ?? "");
      return project ? [{ project, secrets: new Set(names) }] : [];
    });
  }
}

const isValid = (found: Found, secrets: string, now: number): boolean =>
  found.isUsed ? now < found.at + USED_MS : now < found.at + UNUSED_MS && found.secrets === secrets;

const isStillNamed = ({ project, secrets }: Dependant): boolean =>
  !project.spec.paused && project.status?.references?.some(({ resolved }) => secrets.has(resolved)) === true;

const rollsFirst = ({ project }: Dependant): number =>
  project.status?.deployments?.[0]?.status === "in_progress" ? 0 : 1;
