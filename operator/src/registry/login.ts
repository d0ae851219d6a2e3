/** Keeps the Secret with which a project's nodes pull from Amazon's registry: created before the first pull, renewed before it expires. */

import {
  type ConditionSet,
  controllerOf,
  controllerReference,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { fieldManagers, labels, MANAGED_BY, type Project, type ProjectConditionCatalog } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { RetryableError, WaitingError } from "../reconcile-errors.ts";
import { projectResource } from "../resources.ts";
import { type AwsCredentials, type RegistryLogin, RegistryLoginError, type RegistryToken } from "./ecr.ts";

export interface RegistryDependencies {
  client: KubeClient;
  clock: Clock;
  /** Secrets with the project label, without their data. */
  secrets: Store;
  login: RegistryLogin;
  /** Whether a run that has begun may still pull with a Secret of this name; none does unless given. */
  isUsed?: (name: string) => Promise<boolean>;
}

/** The credentials of a login, and when it is to be renewed: an unexpired one costs no call. */
const SOURCE = "slipway.dev/registry-credentials";
export const RENEW_AT = "slipway.dev/renew-at";
const EXPIRES_AT = "slipway.dev/expires-at";
/** Annotations of a Secret that the store of Secrets keeps. */
export const registryAnnotations: readonly string[] = [SOURCE, RENEW_AT, EXPIRES_AT];

const RETRY_MS = 60_000;

/** Name of the Secret that the pods pull with; it stays the same when it is renewed, so nothing is rolled out. */
export function registrySecretName(project: Project): string {
  return `${project.metadata.name}-registry`;
}

/**
 * Makes or renews the login of a project that has AWS credentials.
 * @returns milliseconds until it has to be called again; undefined when it need not be
 * @throws WaitingError about `RegistryReady` when no login is still valid
 */
export async function ensureRegistryLogin(
  project: Project,
  conditions: ConditionSet<ProjectConditionCatalog>,
  deps: RegistryDependencies,
  signal: AbortSignal,
): Promise<number | undefined> {
  const source = project.spec.image?.awsCredentialsRef?.name;
  const secret = deps.secrets.get(project.metadata.namespace, registrySecretName(project));
  if (source === undefined) {
    conditions.remove("RegistryReady");
    return await removeSecret(project, secret, deps, signal);
  }
  const now = deps.clock.now().getTime();
  const annotations = secret?.metadata?.annotations ?? {};
  const timeOf = (key: string) => Date.parse(annotations[key] ?? "") || 0;
  const isOurs = annotations[SOURCE] === source;
  const ready = { type: "RegistryReady", status: "True", reason: "RegistryLoggedIn" } as const;
  if (isOurs && timeOf(RENEW_AT) > now) {
    conditions.set(ready);
    return timeOf(RENEW_AT) - now;
  }
  try {
    const token = await deps.login(await readCredentials(project, source, deps.client, signal), signal);
    const renewAt = now + Math.floor(((token.expiresAt.getTime() - now) * 2) / 3);
    await writeSecret(project, { token, source, renewAt }, deps, signal);
    conditions.set(ready);
    return Math.max(renewAt - now, RETRY_MS);
  } catch (error) {
    if (!(error instanceof RegistryLoginError)) {
      throw error;
    }
    // The current token continues to work until it expires.
    if (isOurs && timeOf(EXPIRES_AT) > now) {
      conditions.set(ready);
      return RETRY_MS;
    }
    throw new WaitingError("RegistryLoginFailed", error.message, {
      condition: "RegistryReady",
      cause: error.cause,
      requeueAfterMs: RETRY_MS,
    });
  }
}

/** Type of the Secrets with AWS credentials. */
const AWS_REGISTRY_TYPE = "slipway.dev/aws-registry";
const KEYS = ["accessKeyId", "secretAccessKey", "region", "accountId"] as const;

async function readCredentials(
  project: Project,
  name: string,
  client: KubeClient,
  signal: AbortSignal,
): Promise<AwsCredentials> {
  const { namespace } = project.metadata;
  const secret = await client.get<KubernetesObject & { type?: string; data?: Record<string, string> }>(
    resources.secrets,
    { namespace, name },
    { signal },
  );
  if (secret.type !== AWS_REGISTRY_TYPE) {
    const message = `The Secret ${name} is not of type ${AWS_REGISTRY_TYPE}.`;
    throw new RegistryLoginError(message, { refused: true, cause: undefined });
  }
  const missing = KEYS.filter((key) => !secret.data?.[key]);
  if (missing.length > 0) {
    const message = `The Secret ${name} lacks: ${missing.join(", ")}.`;
    throw new RegistryLoginError(message, { refused: true, cause: undefined });
  }
  const read = (key: (typeof KEYS)[number]) => Buffer.from(secret.data?.[key] ?? "", "base64").toString();
  return {
    accessKeyId: read("accessKeyId"),
    secretAccessKey: read("secretAccessKey"),
    region: read("region"),
    accountId: read("accountId"),
  };
}

async function writeSecret(
  project: Project,
  { token, source, renewAt }: { token: RegistryToken; source: string; renewAt: number },
  { client, secrets }: RegistryDependencies,
  signal: AbortSignal,
): Promise<void> {
  const ref = { namespace: project.metadata.namespace, name: registrySecretName(project) };
  const live = await client.getOrUndefined<KubernetesObject>(resources.secrets, ref, { signal });
  if (live && !isOwn(live, project)) {
    const message = `A Secret ${ref.name} that is not the platform's is in the way.`;
    // Nobody watches what has no label of ours: it is read again until it is out of the way.
    throw new RetryableError("ChildConflict", message, { condition: "RegistryReady" });
  }
  const { host, username, password, expiresAt } = token;
  const auth = Buffer.from(`${username}:${password}`).toString("base64");
  const written = await client.apply<KubernetesObject>(
    resources.secrets,
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        ...ref,
        labels: { [labels.managedBy]: MANAGED_BY, [labels.project]: project.metadata.name },
        annotations: {
          [SOURCE]: source,
          [RENEW_AT]: new Date(renewAt).toISOString(),
          [EXPIRES_AT]: expiresAt.toISOString(),
        },
        ownerReferences: [controllerReference(project, projectResource)],
      },
      type: "kubernetes.io/dockerconfigjson",
      // Not stringData: server-side apply does not own what that writes.
      data: {
        ".dockerconfigjson": Buffer.from(
          JSON.stringify({ auths: { [host]: { username, password, auth } } }),
        ).toString("base64"),
      },
    } as KubernetesObject,
    { fieldManager: fieldManagers.project, signal },
  );
  secrets.observe(written);
}

/**
 * A project that gets another kind of image no longer needs its login.
 * @returns milliseconds until it is tried again
 */
async function removeSecret(
  project: Project,
  secret: KubernetesObject | undefined,
  { client, isUsed }: RegistryDependencies,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (!secret || secret.metadata?.deletionTimestamp || !isOwn(secret, project)) {
    return undefined;
  }
  const { name = "", namespace, uid } = secret.metadata ?? {};
  if (await isUsed?.(name)) {
    return RETRY_MS;
  }
  await client.delete(resources.secrets, { namespace, name }, { uid, signal });
  return undefined;
}

const isOwn = (secret: KubernetesObject, project: Project): boolean =>
  controllerOf(secret)?.uid === project.metadata.uid;
