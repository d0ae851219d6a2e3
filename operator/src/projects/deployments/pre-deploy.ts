/** A deployment's pre-deploy command: when it runs, and what depends on its end. Pure. */

import { hashJson } from "@slipway/controller-runtime";
import {
  type Deployment,
  type DeploymentSettings,
  imageReference,
  PRE_DEPLOY_TIMEOUT_SECONDS,
  type PreDeployRun,
  type ProjectSpec,
} from "@slipway/crds";

/** The command that a spec wants to run before its next deployment. */
export interface WantedPreDeploy {
  /** Hash of the command and its time limit. */
  commandHash: string;
  /** Deployment whose rollback this is, which does not run it. */
  skipFor?: string;
}

/** The pre-deploy command of a spec; undefined when it has none. */
export function wantedPreDeploy(spec: ProjectSpec): WantedPreDeploy | undefined {
  const { preDeployCommand: command, preDeploySkip: skip, restartedAt } = spec;
  if (command === undefined) {
    return undefined;
  }
  const isRollback = skip !== undefined && skip.restartedAt === restartedAt;
  const commandHash = hashJson({ command, timeoutSeconds: timeoutOf(spec) });
  return isRollback ? { commandHash, skipFor: skip.deployment } : { commandHash };
}

/** Seconds that the command may take. */
export const timeoutOf = ({ preDeployTimeoutSeconds = PRE_DEPLOY_TIMEOUT_SECONDS }: ProjectSpec): number =>
  preDeployTimeoutSeconds;

/** Whether instances of the deployment may begin. */
export const isPreDeployDone = ({ preDeploy }: Pick<Deployment, "preDeploy">): boolean =>
  preDeploy === undefined || preDeploy.status === "succeeded" || preDeploy.status === "skipped";

/** Whether a deployment's command is another than the wanted one, and has not succeeded: the wanted one is to run in its place. */
export function isPreDeployOutdated({ preDeploy }: Deployment, wanted: WantedPreDeploy | undefined): boolean {
  return (
    preDeploy !== undefined &&
    !isPreDeployDone({ preDeploy }) &&
    preDeploy.commandHash !== wanted?.commandHash
  );
}

/**
 * What a new deployment begins with. One that continues where a pause has ended the deployment before does not repeat its command.
 * @param before deployments before it, newest first
 */
export function firstPreDeploy(
  wanted: { settingsHash: string; settings: DeploymentSettings; preDeploy?: WantedPreDeploy },
  before: readonly Deployment[],
): Pick<Deployment, "preDeploy"> {
  const { preDeploy, settingsHash, settings } = wanted;
  if (preDeploy === undefined) {
    return {};
  }
  const { commandHash, skipFor } = preDeploy;
  const [newest] = before;
  if (newest?.settingsHash === settingsHash && newest.preDeploy && isPreDeployDone(newest)) {
    return { preDeploy: newest.preDeploy };
  }
  const target = before.find(({ id }) => id === skipFor);
  const status: PreDeployRun["status"] =
    target !== undefined && runsTheSame(settings, target) ? "skipped" : "pending";
  return { preDeploy: { status, commandHash } };
}

/** Whether image and variables are those of an earlier deployment. */
function runsTheSame({ image, envsFrom = [] }: DeploymentSettings, earlier: Deployment): boolean {
  const names = (refs: readonly { name: string }[]) => refs.map(({ name }) => name).join();
  if (image === undefined || names(envsFrom) !== names(earlier.settings.envsFrom ?? [])) {
    return false;
  }
  const { digest, reference } = earlier.image;
  return digest === undefined ? imageReference(image) === reference : image.digest === digest;
}

/**
 * Whether instances of the wanted settings may run. While nothing is deployed, as of a paused project, settings whose command has not
 * run wait.
 * @param settingsHash of the wanted version
 */
export function mayRollOut(spec: ProjectSpec, settingsHash: string, newest: Deployment | undefined): boolean {
  return newest?.settingsHash === settingsHash
    ? isPreDeployDone(newest)
    : spec.preDeployCommand === undefined;
}

/**
 * When the rollout of a deployment began, RFC 3339: once the end of its command was observed. By the end itself the rollout could be
 * overdue before it has begun, after an outage or by a node's clock.
 */
export const rolloutStartedAt = ({ startedAt, preDeploy }: Deployment): string =>
  preDeploy?.observedAt !== undefined && preDeploy.observedAt > startedAt ? preDeploy.observedAt : startedAt;
