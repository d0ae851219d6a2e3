/** A project's deployments: when a new one begins, and how the newest one ends. Pure. */

import { createHash } from "node:crypto";
import { timestamp } from "@slipway/controller-runtime";
import {
  DEPLOYMENTS_KEPT,
  type Deployment,
  type DeploymentSettings,
  imageReference,
  type Project,
} from "@slipway/crds";

import { firstPreDeploy, isPreDeployOutdated, rolloutStartedAt, type WantedPreDeploy } from "./pre-deploy.ts";

/** What should run. */
export interface WantedDeployment {
  /** Hash of all that the pods are created from; see `hashOfTemplate` of `workload/pod.ts`. */
  settingsHash: string;
  settings: DeploymentSettings;
  /** What is to run before it. */
  preDeploy?: WantedPreDeploy;
  /** Copies that the pods have. */
  sharedVariables?: Deployment["sharedVariables"];
  /** Other values of these are the only reason for another version. */
  valuesOnly?: boolean;
}

/** What a rollback needs of a spec: all that the pods are created from, and how they are paid for. */
export function settingsOf({ spec }: Project): DeploymentSettings {
  const { image, port, plan, paymentMode, envsFrom, healthcheck, readiness } = spec;
  const { terminationGracePeriodSeconds, command } = spec;
  const health = { healthcheck, readiness, terminationGracePeriodSeconds };
  return { image, command, port, plan, paymentMode, envsFrom, ...health };
}

/**
 * The deployments once the wanted one is the newest, or undefined when the list is full: no deployment is
 * forgotten before the ledger has its end, and the last that succeeded stays in any case, since its instances may
 * still serve.
 *
 * The settings of the newest deployment start no new one, unless a pause cut it short, or its pre-deploy command has not succeeded
 * and is another by now. The id
 * comes from the deployment before, so that the same settings get another one when they come back, and the same one
 * when a process ends before it has written it.
 */
export function beginDeployment(
  list: readonly Deployment[],
  wanted: WantedDeployment,
  { uid, generation, now }: { uid: string; generation?: number; now: Date },
): Deployment[] | undefined {
  const [newest, ...older] = list;
  const { settingsHash, settings, sharedVariables, valuesOnly } = wanted;
  const isSame = newest?.settingsHash === settingsHash && newest.status !== "superseded";
  if (newest && isSame && !isPreDeployOutdated(newest, wanted.preDeploy)) {
    // The payment mode, which the pods do not depend on, may have changed.
    return [{ ...newest, settings }, ...older];
  }
  const before = newest ? [supersede(newest, now), ...older] : [];
  const kept = makeRoom(before);
  if (!kept) {
    return undefined;
  }
  const reference = settings.image ? imageReference(settings.image) : "";
  const digest = settings.image?.digest;
  const sameImage =
    newest?.image.reference === reference || (digest !== undefined && newest?.image.digest === digest);
  const deployment: Deployment = {
    id: deploymentId(uid, newest?.id ?? "", generation ?? 0, settingsHash),
    status: "in_progress",
    startedAt: timestamp(now),
    generation,
    settingsHash,
    updatedImage: !sameImage,
    image: { reference, ...(digest ? { digest } : {}) },
    ...firstPreDeploy(wanted, before),
    settings,
    ...(sharedVariables ? { sharedVariables } : {}),
    ...(valuesOnly ? { valuesOnly } : {}),
  };
  return [deployment, ...kept];
}

/** The state of the newest deployment's rollout. */
export interface DeploymentProgress {
  /** Every instance runs it and serves. */
  complete: boolean;
  /** Digest of the image that its instances run. */
  digest?: string;
  /** Why it has failed; absent while its deadline has not passed. */
  failure?: string;
}

/**
 * The deployments after the rollout was observed. One that failed and completes after all has succeeded, for it serves
 * then.
 */
export function advanceDeployment(
  list: readonly Deployment[],
  { complete, digest, failure }: DeploymentProgress,
  now: Date,
): Deployment[] {
  const [newest, ...older] = list;
  if (newest?.status !== "in_progress" && newest?.status !== "failed") {
    return [...list];
  }
  if (complete) {
    const { message: _message, recorded, ...rest } = newest;
    const image = digest ? { ...newest.image, digest } : newest.image;
    return [
      { ...rest, status: "succeeded", finishedAt: timestamp(now), image, ...startedOnly(recorded) },
      ...older,
    ];
  }
  if (failure !== undefined && newest.status === "in_progress") {
    return [{ ...newest, status: "failed", finishedAt: timestamp(now), message: failure }, ...older];
  }
  return [...list];
}

/** A pause ends a deployment that is under way: without instances it can neither succeed nor fail. */
export function pauseDeployment(list: readonly Deployment[], now: Date): Deployment[] {
  const [newest, ...older] = list;
  return newest ? [supersede(newest, now), ...older] : [];
}

/** Milliseconds until a deployment has failed by the age of its rollout; undefined when it has ended. */
export function remainingMs(
  deployment: Deployment | undefined,
  allowedMs: number,
  now: Date,
): number | undefined {
  return deployment?.status === "in_progress"
    ? Date.parse(rolloutStartedAt(deployment)) + allowedMs - now.getTime()
    : undefined;
}

/** What of a deployment the ledger should have by now. */
export function stageOf({ status }: Deployment): "started" | "finished" {
  return status === "in_progress" ? "started" : "finished";
}

function supersede(deployment: Deployment, now: Date): Deployment {
  return deployment.status === "in_progress"
    ? { ...deployment, status: "superseded", finishedAt: timestamp(now) }
    : deployment;
}

/** An end that differs from the recorded one is recorded again. */
function startedOnly(recorded: Deployment["recorded"]): Pick<Deployment, "recorded"> {
  return recorded ? { recorded: "started" } : {};
}

/** Without the oldest that may be forgotten, when the list is full. */
function makeRoom(list: readonly Deployment[]): Deployment[] | undefined {
  if (list.length < DEPLOYMENTS_KEPT) {
    return [...list];
  }
  const serving = list.findIndex(({ status }) => status === "succeeded");
  const dropped = list.findLastIndex(({ recorded }, index) => recorded === "finished" && index !== serving);
  return dropped < 0 ? undefined : list.toSpliced(dropped, 1);
}

function deploymentId(...parts: (string | number)[]): string {
  return `d${createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 24)}`;
}
