/** Keeps what an undelete needs of a project that is being deleted. It may be killed between any two writes, and is repeated. */

import {
  isAlreadyExists,
  isQuotaExceeded,
  type KubeClient,
  type KubernetesObject,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import {
  type Catalog,
  type DeletedProject,
  databaseNames,
  deletedProjectState,
  deletedVolumesRetentionHours,
  fieldManagers,
  isDatabaseType,
  type Project,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { liveChildren } from "../projects/deletion.ts";
import { CERTIFICATE } from "../projects/secrets.ts";
import type { ProjectStores } from "../projects/stores.ts";
import { deletedProjectResource } from "../resources.ts";
import { deleteKept } from "./kept-secrets.ts";
import {
  beyondLimit,
  type Claim,
  isBeingUndeleted,
  type KeptState,
  keptSecret,
  recordNameOf,
  recordOf,
  type Secret,
  stateSecret,
} from "./record.ts";
import { type RetainedVolume, releaseVolume, retainVolume } from "./volumes.ts";

export interface RetentionDependencies {
  client: KubeClient;
  clock: Clock;
  catalog: () => Catalog;
  stores: Pick<ProjectStores, "namespaces">;
}

/** What a step of a deletion is given. */
export interface Reporting {
  signal: AbortSignal;
  event(type: "Warning", reason: string, note: string): void;
}

/** The two steps of a deletion that retain volumes; where the plan retains none, they read and write nothing. */
export class Retention {
  readonly #deps: RetentionDependencies;

  constructor(deps: RetentionDependencies) {
    this.#deps = deps;
  }

  /** Before anything is deleted: keeps the project as it is, and the port by which its clients know a database. */
  async begin(project: Project, signal: AbortSignal): Promise<void> {
    if (this.#hours(project) === 0 || this.#isTerminating(project) || isBeingUndeleted(project)) {
      return;
    }
    const { client } = this.#deps;
    const { namespace, name: id } = project.metadata;
    const name = recordNameOf(project);
    if (await client.getOrUndefined(resources.secrets, { namespace, name }, { metadataOnly: true, signal })) {
      return;
    }
    const claims = (await liveChildren(resources.persistentVolumeClaims, project, client, signal)) as Claim[];
    if (!claims.some(({ metadata, spec }) => spec?.volumeName && !metadata?.deletionTimestamp)) {
      return;
    }
    const outside = isDatabaseType(project.spec.type)
      ? await client.getOrUndefined<KubernetesObject>(
          resources.services,
          { namespace, name: databaseNames(id).outside },
          { signal },
        )
      : undefined;
    const state = { project, services: outside ? [outside] : [], configMaps: [], claims: [] };
    await this.#create(resources.secrets, stateSecret(name, state), signal).catch(ignoreQuota);
  }

  /**
   * Once no instance runs, and before volumes and Secrets are deleted: first the volumes are retained, then all else is kept, and the
   * record comes last: with it the project can be undeleted.
   */
  async complete(project: Project, { event, signal }: Reporting): Promise<void> {
    if (this.#hours(project) === 0) {
      return;
    }
    const { client } = this.#deps;
    const record = recordNameOf(project);
    const claims = (await liveChildren(resources.persistentVolumeClaims, project, client, signal)) as Claim[];
    if (this.#isTerminating(project)) {
      // Nothing can be created in such a namespace: what was retained so far is deleted with the claims.
      await this.#releaseAll(claims, record, signal);
      return;
    }
    const volumes: RetainedVolume[] = [];
    for (const claim of claims) {
      const volume = await retainVolume(claim, record, { client, signal });
      if (volume) {
        volumes.push(volume);
      }
    }
    const ref = { namespace: project.metadata.namespace, name: record };
    const isKept =
      isBeingUndeleted(project) ||
      (await client.getOrUndefined(deletedProjectResource, ref, { metadataOnly: true, signal }));
    if (isKept) {
      return;
    }
    try {
      await (volumes.length > 0
        ? this.#keep(project, claims, volumes, signal)
        : deleteKept(ref, { client, signal }));
    } catch (error) {
      // A deletion does not wait for room.
      if (!isQuotaExceeded(error)) {
        throw error;
      }
      event("Warning", "NotRetained", `The project cannot be undeleted: ${error.message}`);
      await this.#releaseAll(claims, record, signal);
      await deleteKept(ref, { client, signal });
    }
  }

  async #keep(
    project: Project,
    claims: readonly Claim[],
    volumes: RetainedVolume[],
    signal: AbortSignal,
  ): Promise<void> {
    await this.#keepState(project, claims, volumes, signal);
    await this.#keepSecrets(project, recordNameOf(project), signal);
    await this.#makeRoom(project, signal);
    const record = recordOf(project, volumes, { now: this.#deps.clock.now(), hours: this.#hours(project) });
    await this.#create(deletedProjectResource, record, signal);
  }

  async #releaseAll(claims: readonly Claim[], record: string, signal: AbortSignal): Promise<void> {
    for (const { spec } of claims) {
      await releaseVolume(spec?.volumeName, record, { client: this.#deps.client, signal });
    }
  }

  /** Of databases and applications: what a job has run and is charged for is known by its uid. */
  #hours({ spec, status }: Project): number {
    return spec.type === "job"
      ? 0
      : deletedVolumesRetentionHours(this.#deps.catalog(), status?.plan ?? spec.plan);
  }

  #isTerminating({ metadata }: Project): boolean {
    const namespace = this.#deps.stores.namespaces.get(undefined, metadata.namespace ?? "");
    return namespace === undefined || namespace.metadata?.deletionTimestamp !== undefined;
  }

  async #keepState(
    project: Project,
    claims: readonly Claim[],
    volumes: readonly RetainedVolume[],
    signal: AbortSignal,
  ): Promise<void> {
    const { client } = this.#deps;
    const name = recordNameOf(project);
    const ref = { namespace: project.metadata.namespace, name };
    const begun = await client.getOrUndefined<Secret>(resources.secrets, ref, { signal });
    const before = begun ? deletedProjectState<KeptState>(begun.data) : { project, services: [] };
    // Only databases have any; those with an owner are the operator's own, which it creates again.
    const configMaps = isDatabaseType(project.spec.type)
      ? (await liveChildren(resources.configMaps, project, client, signal)).filter(
          ({ metadata }) => (metadata?.ownerReferences ?? []).length === 0,
        )
      : [];
    const bound = claims.filter(({ metadata }) =>
      volumes.some(({ claimName }) => claimName === metadata?.name),
    );
    const state = stateSecret(name, { ...before, configMaps, claims: bound });
    if (begun) {
      const options = { fieldManager: fieldManagers.deletedProject, signal };
      await client.patch(resources.secrets, ref, { data: state.data }, options);
    } else {
      await this.#create(resources.secrets, state, signal);
    }
  }

  async #keepSecrets(project: Project, record: string, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    for (const { metadata } of await liveChildren(resources.secrets, project, client, signal)) {
      // A certificate is issued again.
      if (metadata?.annotations?.[CERTIFICATE] !== undefined) {
        continue;
      }
      const { namespace, name = "" } = metadata ?? {};
      const secret = await client.getOrUndefined<Secret>(resources.secrets, { namespace, name }, { signal });
      if (secret) {
        await this.#create(resources.secrets, keptSecret(record, secret), signal);
      }
    }
  }

  async #makeRoom({ metadata: { namespace } }: Project, signal: AbortSignal): Promise<void> {
    const { client } = this.#deps;
    const records = await client.listAll<DeletedProject>(deletedProjectResource, { namespace, signal });
    for (const { metadata } of beyondLimit(records)) {
      const { name, uid } = metadata;
      await client.delete(deletedProjectResource, { namespace, name }, { uid, signal });
    }
  }

  async #create(resource: Resource, object: KubernetesObject, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.client.create(resource, object, {
        fieldManager: fieldManagers.deletedProject,
        signal,
      });
    } catch (error) {
      // By the attempt before this one.
      if (!isAlreadyExists(error)) {
        throw error;
      }
    }
  }
}

/** The deletion is final then: it reports it when it comes to the volumes. */
function ignoreQuota(error: unknown): void {
  if (!isQuotaExceeded(error)) {
    throw error;
  }
}
