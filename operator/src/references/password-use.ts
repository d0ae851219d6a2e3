/** Whether something may still start, or runs, with a password that it got by reference. */

import type { KubeClient, KubernetesObject, Store } from "@slipway/controller-runtime";
import { labels, type Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { BY_PASSWORD, passwordKey } from "./password-labels.ts";
import { secretsInUse } from "./secrets-in-use.ts";

/** For how long a password that was found to be used counts as used: its database may be reconciled every second. */
export const USED_MS = 15_000;

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

export class PasswordUse {
  readonly #deps: PasswordUseDependencies;
  /** By uid of the database: the password that was used last, and when that was seen, in milliseconds. */
  readonly #seen = new Map<string, { hash: string; at: number }>();

  constructor(deps: PasswordUseDependencies) {
    this.#deps = deps;
  }

  forget(uid: string): void {
    this.#seen.delete(uid);
  }

  /**
   * Whether an instance, run or pre-deploy command of any project has a password of a database among its variables, or may be started with
   * it. That none has is read live; a dependant that is still to be rolled says so in its status.
   * @param hash keyed hash of the password
   * @throws KubeError
   */
  async isUsed(database: Project, hash: string, signal: AbortSignal): Promise<boolean> {
    const { uid = "" } = database.metadata;
    const now = this.#deps.clock.now().getTime();
    const seen = this.#seen.get(uid);
    if (seen?.hash === hash && now >= seen.at && now < seen.at + USED_MS) {
      return true;
    }
    const isUsed = await this.#isUsedNow(database, hash, signal);
    if (isUsed) {
      this.#seen.set(uid, { hash, at: now });
    } else {
      this.#seen.delete(uid);
    }
    return isUsed;
  }

  async #isUsedNow({ metadata }: Project, hash: string, signal: AbortSignal): Promise<boolean> {
    const { client, stores } = this.#deps;
    const { namespace = "", name } = metadata;
    const secrets = stores.secrets.byIndex(BY_PASSWORD, passwordKey(namespace, name, hash));
    const dependants = this.#dependants(namespace, secrets);
    if (dependants.some(isStillNamed)) {
      return true;
    }
    // Those that are being rolled first: the others have been, more likely.
    for (const { project, secrets } of dependants.toSorted((a, b) => rollsFirst(a) - rollsFirst(b))) {
      const used = await secretsInUse(project, client, signal);
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

const isStillNamed = ({ project, secrets }: Dependant): boolean =>
  project.status?.references?.some(({ resolved }) => secrets.has(resolved)) === true;

const rollsFirst = ({ project }: Dependant): number =>
  project.status?.deployments?.[0]?.status === "in_progress" ? 0 : 1;
