import { isDeepStrictEqual } from "node:util";
import {
  isNotFound,
  type KubeClient,
  KubeError,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import {
  annotations,
  BUILDS_PULL_SECRET,
  type Catalog,
  type Deployment,
  fieldManagers,
  findPlan,
  labels,
  MANAGED_BY,
  type Project,
  type ProjectSpec,
  type Rollback,
} from "@slipway/crds";
import { findDeployment } from "@slipway/ledger";
import type { Principal } from "../auth/principal.ts";
import { mapConcurrently } from "../concurrency.ts";
import { failures } from "../errors/catalog.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import { refuseBlocked, refuseExhausted } from "../organizations/service.ts";
import type { Permission } from "../policy/permissions.ts";
import { bindSources } from "../references/bind.ts";
import { withProjects } from "../references/references.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import type { ChangeOptions, ChangeServices } from "./change.ts";
import { checkPlan, costsMore } from "./plan-change.ts";
import { changeWithQuota } from "./quotas.ts";

const DIGEST = /^sha256:[a-f0-9]{64}$/;
const MAX_CONCURRENT_READS = 4;

/**
 * Creates a deployment from the settings of an earlier one: image (the exact manifest that ran), port, environment,
 * command, health check or readiness, time to stop, plan and payment mode. A project that is built from Git goes back to a build's image, until a build that is requested
 * for later has one.
 * It does not run the pre-deploy command unless asked to.
 * @param grants what the caller may do: a rollback needs the permission of each of its changes, and of each reference that the project does not have now
 * @throws Failure 403 that names the missing permissions; 400 for a reference to what the caller may not read; 404 for a deployment that does not exist, 409 for one whose settings are deleted, and what a plan change throws
 */
export async function rollBack(
  project: ApiProject,
  deploymentId: string,
  grants: Principal["grants"],
  services: ChangeServices & Pick<Services, "catalog" | "ledger">,
  { runPreDeploy = false }: { runPreDeploy?: boolean } = {},
): Promise<void> {
  if (!findIn(project.resource, deploymentId)) {
    await refuseUnlisted(project, deploymentId, services);
  }
  const { catalog, now } = services;
  const deploymentOf = (live: Project): Deployment => {
    const deployment = findIn(live, deploymentId);
    if (!deployment) {
      throw failures.deploymentNotAvailable(deploymentId);
    }
    return deployment;
  };
  const change = (spec: ProjectSpec, live: Project, projects: readonly Project[]): ProjectSpec => {
    const deployment = deploymentOf(live);
    const rollback = builtRollback(live, deployment, now());
    const at = now().toISOString();
    const settings = withDeployment(spec, deployment, at, catalog.current);
    const skip =
      spec.preDeployCommand === undefined || runPreDeploy
        ? {}
        : { preDeploySkip: { deployment: deployment.id, restartedAt: at } };
    const wanted = { ...settings, ...(rollback === undefined ? {} : { rollback }), ...skip };
    const lacking = permissionsOf(spec, wanted).filter((one) => !grants.onProject(one, project.id));
    if (lacking.length > 0) {
      throw failures.projectPermissions(lacking, project.id);
    }
    const { envsFrom } = wanted;
    return envsFrom === undefined
      ? wanted
      : { ...wanted, envsFrom: bindSources(envsFrom, { type: spec.type, grants, self: live }, projects) };
  };
  const prepare: ChangeOptions["prepare"] = async (wanted, live, kube) => {
    if (wanted.spec.plan !== live.spec.plan) {
      await refuseBlocked(services, project.organizationId);
    }
    if (costsMore(wanted.spec, live.spec, catalog.current)) {
      await refuseExhausted(services, project.organizationId);
    }
    await keepSecrets(kube, wanted, deploymentId, now());
  };
  await withProjects(project.organizationId, services, (projects) =>
    changeWithQuota(project, services, (spec, live) => change(spec, live, projects), { prepare }),
  );
}

const findIn = ({ status }: Project, id: string): Deployment | undefined =>
  status?.deployments?.find((deployment) => deployment.id === id);

/** The ledger has every deployment, the project only the newest. */
async function refuseUnlisted(
  project: ApiProject,
  id: string,
  { ledger }: Pick<Services, "ledger">,
): Promise<never> {
  const known = await withLedgerErrors(() => findDeployment(ledger, { ...project.identity, id }));
  throw known ? failures.deploymentNotAvailable(id) : failures.deploymentNotFound(id);
}

const isBuilt = ({ source, github }: ProjectSpec): boolean => source !== undefined || github !== undefined;

/**
 * Which of a project's built images is to run, as `spec.rollback`; undefined for a project from an image. Pure.
 * @throws Failure 409 for a deployment whose image no build of this project has published
 */
export function builtRollback(
  { spec, status }: Pick<Project, "spec" | "status">,
  { id, settings, image: { digest = "" } }: Deployment,
  now: Date,
): Rollback | undefined {
  if (!isBuilt(spec)) {
    return undefined;
  }
  const { image, imageBuildAt } = status?.build ?? {};
  const isOwn =
    settings.image?.pullSecretRef?.name === BUILDS_PULL_SECRET &&
    image !== undefined &&
    repositoryOf(settings.image.url) === repositoryOf(image.reference);
  if (!isOwn || !DIGEST.test(digest)) {
    throw failures.deploymentNotAvailable(id);
  }
  // Never before the build that it supersedes, whatever this machine's clock shows.
  const at = Math.max(now.getTime(), Date.parse(imageBuildAt ?? "") || 0);
  return { at: new Date(at).toISOString(), digest };
}

const repositoryOf = (reference: string): string => reference.replace(/@sha256:[a-f0-9]{64}$/, "");

/**
 * The spec with a deployment's settings. Everything else stays as it is; a project that is built from Git gets no image.
 * @param now RFC 3339
 * @throws Failure 409 when the deployment's plan is no longer sold, and what a plan change throws
 */
export function withDeployment(
  spec: ProjectSpec,
  { id, settings, image: deployed }: Deployment,
  now: string,
  catalog: Catalog,
): ProjectSpec {
  const { image: _image, port: _port, envsFrom: _envs, healthcheck: _check, ...others } = spec;
  const { command: _command, readiness: _ready, terminationGracePeriodSeconds: _grace, ...unset } = others;
  const { preDeploySkip: _skip, ...rest } = unset;
  const { image, port, envsFrom, healthcheck, readiness, plan, paymentMode } = settings;
  const { command, terminationGracePeriodSeconds } = settings;
  if (image === undefined || findPlan(catalog, plan) === undefined) {
    throw failures.deploymentNotAvailable(id);
  }
  const digest = DIGEST.test(deployed.digest ?? "") ? deployed.digest : image.digest;
  const wanted: ProjectSpec = {
    ...rest,
    ...(isBuilt(spec) ? {} : { image: { ...image, ...(digest === undefined ? {} : { digest }) } }),
    // A project that is built from Git has none: the start command is in its image.
    ...(command === undefined || isBuilt(spec) ? {} : { command }),
    ...(port === undefined ? {} : { port }),
    ...(envsFrom === undefined || envsFrom.length === 0 ? {} : { envsFrom }),
    ...(healthcheck === undefined ? {} : { healthcheck }),
    ...(terminationGracePeriodSeconds === undefined ? {} : { terminationGracePeriodSeconds }),
    ...(readiness === undefined ? {} : { readiness }),
    plan,
    paymentMode: paymentMode ?? spec.paymentMode,
    restartedAt: now,
  };
  checkPlan(wanted, spec, catalog);
  return wanted;
}

/**
 * The permissions that the changes of a rollback need by themselves. Another manifest of the same image is what a rollback is for.
 * Pure.
 */
export function permissionsOf(before: ProjectSpec, wanted: ProjectSpec): Permission[] {
  const isSame = (of: (spec: ProjectSpec) => unknown): boolean => isDeepStrictEqual(of(before), of(wanted));
  const changes: [Permission, boolean][] = [
    [
      "project.image.update",
      !isSame(({ image, command }) => [image?.url, image?.pullSecretRef, image?.awsCredentialsRef, command]),
    ],
    ["project.envs.update", !isSame(({ envsFrom = [] }) => envsFrom)],
    ["project.plan.update", !isSame(({ plan, paymentMode }) => [plan, paymentMode])],
  ];
  return changes.flatMap(([permission, isChanged]) => (isChanged ? [permission] : []));
}

/**
 * Keeps the Secrets that the spec names: those created for the project are marked as needed, as the operator may be about to remove
 * what is over the project's budget.
 * @throws Failure 409 when one is deleted: its pods could not start
 */
export async function keepSecrets(
  kube: Pick<KubeClient, "getOrUndefined" | "patch">,
  { metadata, spec }: Pick<Project, "metadata" | "spec">,
  id: string,
  now: Date,
): Promise<void> {
  const refs = [...(spec.envsFrom ?? []), spec.image?.pullSecretRef, spec.image?.awsCredentialsRef];
  const names = refs.flatMap((ref) => (ref === undefined ? [] : [ref.name]));
  const found = await mapConcurrently(names, MAX_CONCURRENT_READS, (name) =>
    keepSecret(kube, { namespace: metadata.namespace, name }, now),
  );
  if (found.includes(false)) {
    throw failures.deploymentNotAvailable(id);
  }
}

/** @returns whether it exists; users' own are read only */
async function keepSecret(
  kube: Pick<KubeClient, "getOrUndefined" | "patch">,
  ref: { namespace: string | undefined; name: string },
  now: Date,
): Promise<boolean> {
  try {
    const secret = await kube.getOrUndefined<KubernetesObject>(resources.secrets, ref);
    if (secret?.metadata?.labels?.[labels.managedBy] !== MANAGED_BY) {
      return secret !== undefined;
    }
    const marked = { metadata: { annotations: { [annotations.reusedAt]: now.toISOString() } } };
    await kube.patch(resources.secrets, ref, marked, { fieldManager: fieldManagers.api });
    return true;
  } catch (error) {
    // Removed between the two requests.
    if (isNotFound(error)) {
      return false;
    }
    throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
  }
}
