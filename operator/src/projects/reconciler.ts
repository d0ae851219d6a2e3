/** Reconciles one project, step by step. */

import {
  ensureFinalizer,
  type KubeClient,
  objectReconciler,
  outcomeOfError,
  type Reconciler,
  type Result,
  removeFinalizer,
  retriedIn,
  type Store,
} from "@slipway/controller-runtime";
import {
  fieldManagers,
  finalizers,
  formerStatePatch,
  type Project,
  type ProjectConditionCatalog,
} from "@slipway/crds";
import { BillingSteps } from "../billing/steps.ts";
import { secretsOfRuns } from "../jobs/deletion.ts";
import { WaitingError } from "../reconcile-errors.ts";
import { collectResolvedSecrets } from "../references/garbage.ts";
import { ReferenceSteps } from "../references/reconciler.ts";
import { ensureRegistryLogin } from "../registry/login.ts";
import { projectResource } from "../resources.ts";
import { isBeingUndeleted } from "../undelete/record.ts";
import { SharedVariableSteps } from "../variable-groups/reconciler.ts";
import { takeOver } from "../variable-groups/take-over.ts";
import {
  type Accepted,
  creationPendingMs,
  organizationOf,
  refuseForeignBuild,
  refuseUnbuilt,
} from "./accept.ts";
import { kindsOf, type ProjectDependencies } from "./dependencies.ts";
import { DeploymentSteps } from "./deployments/steps.ts";
import { pullsBuilt, requireBuilt, setBuildCondition, withBuiltImage } from "./images/built-image.ts";
import { type ProjectContext, type ProjectKind, shortestDelay } from "./kind.ts";
import { identityOf, reserveQuota, setLimitExceeded } from "./quotas/steps.ts";
import { collectGarbage } from "./secret-garbage.ts";
import { adoptSecrets, findMissingSecret } from "./secrets.ts";
import { setPhase } from "./status-fields.ts";

/** Makes the reconciler of projects. */
export function projectReconciler(deps: ProjectDependencies): Reconciler {
  const { client, clock, recorder, stores } = deps;
  const store = stores.projects;
  const steps = new ProjectSteps(deps);
  const reconcile = objectReconciler<Project, ProjectConditionCatalog>({
    client,
    clock,
    recorder,
    store,
    resource: projectResource,
    fieldManager: fieldManagers.project,
    reconcile: (project, context) =>
      project.metadata.deletionTimestamp
        ? steps.finalize(project, context)
        : steps.reconcile(project, context),
    summarize: (project, status, conditions, outcome) => {
      setLimitExceeded(conditions, outcome);
      setPhase(project, conditions, status);
    },
  });
  return async (ref, context) => {
    // Before anything else, so that whatever comes after is cleaned up; and before the status is read, since it changes
    // the object.
    const project = store.get(ref.namespace, ref.name);
    const leftMs = project ? creationPendingMs(project, clock.now()) : 0;
    if (leftMs > 0) {
      return { requeueAfterMs: leftMs };
    }
    // The rest of it is created first. A deletion does not wait for that.
    if (project && isBeingUndeleted(project) && !project.metadata.deletionTimestamp) {
      return undefined;
    }
    if (project) {
      const options = { client, resource: projectResource, store, fieldManager: fieldManagers.project };
      const current = await ensureFinalizer(project, finalizers.project, {
        ...options,
        signal: context.signal,
      });
      await convertFormerState(current, { client, store, signal: context.signal });
    }
    return reconcile(ref, context);
  };
}

class ProjectSteps {
  readonly #deps: ProjectDependencies;
  readonly #deployments: DeploymentSteps;
  readonly #kindOf: (project: Project) => ProjectKind;
  readonly #references: ReferenceSteps;
  readonly #shared: SharedVariableSteps;
  readonly #billing: BillingSteps;

  constructor(deps: ProjectDependencies) {
    this.#deps = deps;
    this.#deployments = new DeploymentSteps(deps.deploymentRecords, deps.clock);
    this.#kindOf = kindsOf(deps, this.#deployments);
    this.#references = new ReferenceSteps(deps);
    this.#shared = new SharedVariableSteps(deps);
    this.#billing = new BillingSteps(deps);
  }

  /** Creates and keeps everything a project needs. */
  async reconcile(declared: Project, context: ProjectContext): Promise<Result | undefined> {
    const project = withBuiltImage(declared);
    const kind = this.#kindOf(project);
    setBuildCondition(project, context.conditions);
    await kind.observeRollout(project, context);
    const { applied, renewInMs } = await this.#apply(kind, project, context).catch((error: unknown) =>
      this.#holdRejectedSpec(kind, project, error, context),
    );
    const garbageInMs = await this.#collectGarbage(project, context);
    const observation = await kind.observe(project, applied, context).catch((error: unknown) => {
      // Its objects are applied, whatever is wrong with what became of them.
      this.#billing.report(project, context.status);
      throw error;
    });
    const reportInMs = this.#billing.report(project, context.status);
    const requeueAfterMs = shortestDelay(observation.requeueAfterMs, renewInMs, garbageInMs, reportInMs);
    if (observation.refused) {
      throw retriedIn(observation.refused, requeueAfterMs);
    }
    return requeueAfterMs === undefined ? undefined : { requeueAfterMs };
  }

  /** From the spec to the objects of the project, each step a gate for those that follow. */
  async #apply(kind: ProjectKind, project: Project, context: ProjectContext) {
    const { accepted, pullInMs } = await this.#validate(kind, project, context);
    const loginInMs = await this.#logIn(project, context);
    const references = await this.#references.resolve(project, accepted.organizationId, context);
    return takeOver(context.status, async () => {
      const shared = await this.#shared.resolve(project, accepted.organizationId, context);
      const resolved = new Map([...references, ...shared.resolved]);
      const wanted = { ...accepted, resolved, valuesOnly: shared.isOfValues };
      const applied = await kind.apply(project, wanted, context);
      return { applied, renewInMs: shortestDelay(loginInMs, pullInMs, shared.againInMs) };
    });
  }

  /** Keeps what a rejected spec must not change; throws why it is rejected, with when to reconcile again. */
  async #holdRejectedSpec(
    kind: ProjectKind,
    project: Project,
    error: unknown,
    context: ProjectContext,
  ): Promise<never> {
    if (!outcomeOfError(error).visible) {
      throw error;
    }
    const requeueAfterMs = shortestDelay(
      await kind.holdRejectedSpec(project, context),
      this.#billing.reportRejected(project, context.status),
    );
    // Each spec that is rejected later than its references may have replaced values.
    throw retriedIn(
      error,
      shortestDelay(requeueAfterMs, await this.#collectResolvedSecrets(project, context)),
    );
  }

  /** Deletes everything of a project, and its finalizer last. */
  async finalize(project: Project, context: ProjectContext): Promise<Result | undefined> {
    const { client, stores, quotas, deploymentRecords } = this.#deps;
    const { conditions, signal } = context;
    this.#deployments.end(project, context.status);
    this.#billing.reportDeletion(project, context.status);
    const remaining =
      (await this.#kindOf(project).finalize(project, context)) ?? this.#billing.remaining(project);
    if (remaining) {
      const { reason, message, retryAfterMs } = remaining;
      conditions.set({ type: "Terminating", status: "True", reason, message });
      conditions.set({ type: "Ready", status: "False", reason, message });
      return { requeueAfterMs: retryAfterMs };
    }
    await quotas.release(identityOf(project));
    // The status may never be written again, and the ledger's records are derived from it.
    await deploymentRecords.recordFinal({ ...project, status: context.status });
    conditions.set({ type: "Ready", status: "False", reason: "DeletingChildren" });
    await removeFinalizer(project, finalizers.project, {
      client,
      resource: projectResource,
      store: stores.projects,
      fieldManager: fieldManagers.project,
      signal,
    });
    return undefined;
  }

  async #validate(
    kind: ProjectKind,
    project: Project,
    { conditions, signal }: ProjectContext,
  ): Promise<{ accepted: Accepted; pullInMs?: number }> {
    const { client, stores, quotas, builtPull } = this.#deps;
    const { namespace = "" } = project.metadata;
    const organizationId = organizationOf(project, stores.namespaces.get(undefined, namespace));
    refuseUnbuilt(project, builtPull !== undefined);
    refuseForeignBuild(project, organizationId, builtPull?.host);
    const plan = kind.validate(project);
    const pullInMs = pullsBuilt(project)
      ? await builtPull?.ensure({ namespace, organizationId }, signal)
      : undefined;
    const deps = { client, secrets: stores.secrets };
    const missing = await findMissingSecret(project, deps, signal);
    if (missing) {
      throw new WaitingError(missing.reason, missing.message, {
        condition: "Accepted",
        requeueAfterMs: 5_000,
      });
    }
    await reserveQuota(project, plan, quotas);
    await adoptSecrets(project, deps, signal);
    requireBuilt(project);
    conditions.set({ type: "Accepted", status: "True", reason: "Accepted" });
    return { accepted: { organizationId, plan }, pullInMs };
  }

  /** Returns after how many milliseconds the login to the image's registry is to be renewed; paused, nobody pulls. */
  async #logIn(project: Project, { conditions, signal }: ProjectContext): Promise<number | undefined> {
    const { client, clock, stores, registryLogin: login } = this.#deps;
    if (project.spec.paused) {
      conditions.remove("RegistryReady");
      return undefined;
    }
    return ensureRegistryLogin(
      project,
      conditions,
      {
        client,
        clock,
        secrets: stores.secrets,
        login,
        isUsed: async (name) => (await secretsOfRuns(project, client, signal)).has(name),
      },
      signal,
    );
  }

  async #collectGarbage(project: Project, context: ProjectContext): Promise<number | undefined> {
    const { client, clock, stores } = this.#deps;
    const deps = { client, secrets: stores.secrets, now: clock.now() };
    return shortestDelay(
      await collectGarbage(project, deps, context.signal),
      await this.#collectResolvedSecrets(project, context),
    );
  }

  #collectResolvedSecrets(project: Project, { signal, status }: ProjectContext) {
    const { client, clock, stores } = this.#deps;
    const deps = { client, secrets: stores.secrets, now: clock.now() };
    return collectResolvedSecrets(project, status, deps, signal);
  }
}

/**
 * Replaces state that an earlier version kept in annotations with fields of the spec. Pod templates do not change.
 * @throws KubeError 409 when the project changed since it was read
 */
async function convertFormerState(
  project: Project,
  { client, store, signal }: { client: KubeClient; store: Store<Project>; signal: AbortSignal },
): Promise<void> {
  const patch = project.metadata.deletionTimestamp ? undefined : formerStatePatch(project);
  if (patch === undefined) {
    return;
  }
  const { namespace, name } = project.metadata;
  const options = { fieldManager: fieldManagers.project, signal };
  store.observe(await client.patch<Project>(projectResource, { namespace, name }, patch, options));
}
