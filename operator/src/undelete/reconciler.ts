/** Reconciles the record of a deleted project: until it expires, or the project is undeleted. */

import {
  type EventRecorder,
  type KubeClient,
  type ObjectContext,
  objectReconciler,
  type Reconciler,
  type Result,
  removeFinalizer,
  type Store,
} from "@slipway/controller-runtime";
import {
  annotations,
  type DeletedProject,
  type DeletedProjectConditionCatalog,
  fieldManagers,
  finalizers,
  type Project,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { deletedProjectResource, projectResource } from "../resources.ts";
import { deleteKept } from "./kept-secrets.ts";
import { completeUndelete, createProject, hasVolumes, readState, restoreChildren } from "./undelete.ts";
import { releaseVolume } from "./volumes.ts";

export interface DeletedProjectDependencies {
  client: KubeClient;
  clock: Clock;
  recorder: EventRecorder;
  records: Store<DeletedProject>;
  /** Namespaces of organizations. */
  namespaces: Store;
}

type Context = ObjectContext<DeletedProject, DeletedProjectConditionCatalog>;

/** Why a project cannot be undeleted. */
const refusals = ["NameTaken", "VolumeMissing"] as const;
type Refusal = (typeof refusals)[number];

const reasonOf = ({ status }: DeletedProject) =>
  status?.conditions?.find(({ type }) => type === "Ready")?.reason;

/** Poll interval for what an undelete waits for, in milliseconds. */
const POLL_INTERVAL_MS = 500;

export function deletedProjectReconciler(deps: DeletedProjectDependencies): Reconciler {
  const { client, clock, recorder, records: store } = deps;
  const steps = new RecordSteps(deps);
  return objectReconciler<DeletedProject, DeletedProjectConditionCatalog>({
    client,
    clock,
    recorder,
    store,
    resource: deletedProjectResource,
    fieldManager: fieldManagers.deletedProject,
    reconcile: (record, context) => steps.reconcile(record, context),
  });
}

class RecordSteps {
  readonly #deps: DeletedProjectDependencies;

  constructor(deps: DeletedProjectDependencies) {
    this.#deps = deps;
  }

  async reconcile(record: DeletedProject, context: Context): Promise<Result | undefined> {
    const { client, clock } = this.#deps;
    const { namespace, deletionTimestamp } = record.metadata;
    const { projectRef, expiresAt, undeleteRequestedAt } = record.spec;
    const ref = { namespace, name: projectRef.name };
    const project = await client.getOrUndefined<Project>(projectResource, ref, { signal: context.signal });
    // Once its Project exists an undelete is carried out to the end, also when the record expires or is deleted meanwhile.
    if (project?.metadata.annotations?.[annotations.undeletedFrom] === record.metadata.name) {
      return project.metadata.deletionTimestamp
        ? this.#abandon(record, context)
        : this.#restore(record, project, context);
    }
    if (deletionTimestamp !== undefined) {
      return this.#release(record, context);
    }
    const leftMs = Date.parse(expiresAt) - clock.now().getTime();
    if (leftMs <= 0) {
      await this.#delete(record, context);
      return undefined;
    }
    if (undeleteRequestedAt === undefined) {
      // Why the last request was refused stays to be read until the next one.
      const refused = refusals.find((reason) => reasonOf(record) === reason);
      context.conditions.set(
        refused
          ? { type: "Ready", status: "False", reason: refused }
          : { type: "Ready", status: "True", reason: "Retained" },
      );
      return { requeueAfterMs: leftMs };
    }
    return project === undefined ? this.#create(record, context) : this.#refuse(record, "NameTaken", context);
  }

  async #create(record: DeletedProject, context: Context): Promise<Result | undefined> {
    const access = { client: this.#deps.client, signal: context.signal };
    const state = await readState(record, access);
    if (state === undefined || !(await hasVolumes(record, access))) {
      return this.#refuse(record, "VolumeMissing", context);
    }
    const project = await createProject(record, state, access);
    return project ? this.#restore(record, project, context) : this.#refuse(record, "NameTaken", context);
  }

  async #restore(record: DeletedProject, project: Project, context: Context): Promise<Result | undefined> {
    const access = { client: this.#deps.client, signal: context.signal };
    const state = await readState(record, access);
    if (state === undefined) {
      throw new Error(`the Secret ${record.metadata.name} with the project's state is gone`);
    }
    context.conditions.set({ type: "Ready", status: "False", reason: "Undeleting" });
    if (!(await restoreChildren(record, project, state, access))) {
      return { requeueAfterMs: POLL_INTERVAL_MS };
    }
    // Before the project is reconciled, and so can be deleted with a record of its own: this one is never undeleted again.
    await this.#delete(record, context);
    await completeUndelete(project, access);
    return undefined;
  }

  /** The project was deleted before it was whole: its volumes are still this record's, which stays until it expires. */
  async #abandon(record: DeletedProject, context: Context): Promise<Result> {
    context.conditions.set({ type: "Ready", status: "False", reason: "Undeleting" });
    await this.#withdraw(record, context);
    return { requeueAfterMs: POLL_INTERVAL_MS };
  }

  /** First the reason is in the status, then the request is withdrawn. */
  async #refuse(record: DeletedProject, reason: Refusal, context: Context): Promise<Result> {
    context.conditions.set({ type: "Ready", status: "False", reason });
    const ready = record.status?.conditions?.find(({ type }) => type === "Ready");
    if (ready?.reason === reason && ready.observedGeneration === record.metadata.generation) {
      await this.#withdraw(record, context);
    }
    return { requeueAfterMs: POLL_INTERVAL_MS };
  }

  /** The request is answered. */
  async #withdraw({ metadata, spec }: DeletedProject, { signal }: Context): Promise<void> {
    if (spec.undeleteRequestedAt !== undefined) {
      const { name, namespace, uid } = metadata;
      const patch = { metadata: { uid }, spec: { undeleteRequestedAt: null } };
      const options = { fieldManager: fieldManagers.deletedProject, signal };
      await this.#deps.client.patch(deletedProjectResource, { namespace, name }, patch, options);
    }
  }

  /** As it was read: one that is to be undeleted since does not expire. */
  async #delete({ metadata }: DeletedProject, { signal }: Context): Promise<void> {
    const { name, namespace, uid, resourceVersion, deletionTimestamp } = metadata;
    if (deletionTimestamp === undefined) {
      const options = { uid, resourceVersion, signal };
      await this.#deps.client.delete(deletedProjectResource, { namespace, name }, options);
    }
  }

  /** Volumes first: without the record nobody would know of them. */
  async #release(record: DeletedProject, { conditions, signal }: Context): Promise<undefined> {
    const { client, records, namespaces } = this.#deps;
    const { name, namespace = "" } = record.metadata;
    for (const { volumeName } of record.spec.volumes) {
      await releaseVolume(volumeName, name, { client, signal });
    }
    // In a namespace that is being deleted they are deleted with it, and the right to do so may be gone.
    if (namespaces.get(undefined, namespace)?.metadata?.deletionTimestamp === undefined) {
      await deleteKept({ namespace, name }, { client, signal });
    }
    conditions.set({ type: "Ready", status: "False", reason: "Releasing" });
    await removeFinalizer(record, finalizers.deletedProject, {
      client,
      resource: deletedProjectResource,
      store: records,
      fieldManager: fieldManagers.deletedProject,
      signal,
    });
    return undefined;
  }
}
