import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isConflict, isNotFound, type KubeClient, KubeError, resources } from "@slipway/controller-runtime";
import {
  credentialKeys,
  credentialsHash,
  type DatabaseCredentials,
  fieldManagers,
  newPassword,
  type Project,
} from "@slipway/crds";
import { withDeadline } from "../concurrency.ts";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import {
  type CredentialsSecret,
  connectionOf,
  decodeCredentials,
  encodeCredentials,
  readCredentialsSecret,
  type SecretConnection,
  secretConnectionOf,
} from "./connection.ts";

/** How long the engine may take to set a new password, and the cluster to store it. */
export const IN_FORCE_LIMIT_MS = 30_000;
const WRITE_LIMIT_MS = 10_000;
const LOOK_EVERY_MS = 100;
/** Attempts to write a Secret that is changed concurrently. */
const ATTEMPTS = 5;

export interface Renewed {
  project: ApiProject;
  connection: SecretConnection;
}

export interface RenewalOptions {
  /** The password before it ends immediately, whatever uses it. */
  revokePrevious?: boolean;
  limitMs?: number;
}

/**
 * Renews the password of a database's user, and resolves once the engine has set it. Open sessions stay. A
 * password that the engine had not set in time was not shown to any client: the next call waits for that one, and creates none.
 * @throws Failure 409 for a paused project; 503 when the password is not in force in time, or the cluster does not answer
 */
export async function renewCredentials(
  project: ApiProject,
  services: Pick<Services, "kube" | "projects">,
  { revokePrevious = false, limitMs = IN_FORCE_LIMIT_MS }: RenewalOptions = {},
): Promise<Renewed> {
  if (project.resource.metadata.deletionTimestamp !== undefined) {
    throw failures.projectAlreadyDeleted();
  }
  if (project.resource.spec.paused) {
    throw failures.projectPaused();
  }
  // Without an address no client could use the answer.
  if (connectionOf(project.resource) === null) {
    throw failures.databaseCredentialsPending();
  }
  const deadline = Date.now() + limitMs;
  const credentials = await withDeadline(WRITE_LIMIT_MS, (signal) =>
    writeNewPassword(project, services.kube.until(signal), revokePrevious),
  ).catch((error: unknown) => {
    throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
  });
  const wanted = credentialsHash(credentials);
  for (let now: ApiProject | undefined = project; now !== undefined; ) {
    const connection = secretConnectionOf(now.resource, credentials);
    const isInForce = now.resource.status?.database?.credentialsHash === wanted;
    if (isInForce && connection) {
      return { project: now, connection };
    }
    if (Date.now() >= deadline) {
      throw failures.databaseCredentialsPending();
    }
    await sleep(LOOK_EVERY_MS);
    now = await services.projects.find(project.organizationId, project.id);
  }
  throw failures.projectAlreadyDeleted();
}

/** @returns the content of the Secret then */
async function writeNewPassword(
  { resource }: ApiProject,
  kube: KubeClient,
  revokePrevious: boolean,
): Promise<DatabaseCredentials> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const secret = await readCredentialsSecret(kube, resource.metadata);
    // A project created with kubectl, whose Secret the operator has not written yet.
    if (!secret) {
      throw failures.databaseCredentialsPending();
    }
    const before = decodeCredentials(secret);
    const isPending =
      before[credentialKeys.previousPassword] !== undefined ||
      (await isAwaited(before, resource.metadata, kube));
    if (isPending && (!revokePrevious || before[credentialKeys.revokePrevious] !== undefined)) {
      return before;
    }
    // An operator of 0.2.0 leaves the mark of an earlier renewal in the Secret.
    const revoke = { [credentialKeys.revokePrevious]: revokePrevious ? "true" : null };
    const renewal = isPending ? {} : newPasswordAfter(before);
    try {
      return await write(kube, secret, before, { ...renewal, ...revoke });
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) {
        throw error;
      }
    }
  }
  throw failures.databaseCredentialsPending();
}

/**
 * Whether the engine has a password that the project's status does not name yet: no client was shown that one. Read live, since a client that was
 * is to get another one. A password that no engine takes is replaced.
 */
async function isAwaited(
  credentials: DatabaseCredentials,
  { namespace, name }: Project["metadata"],
  kube: KubeClient,
): Promise<boolean> {
  const live = await kube.getOrUndefined<Project>(projectResource, { namespace, name });
  const inForce = live?.status?.database?.credentialsHash;
  const password = credentials[credentialKeys.password] ?? "";
  return inForce !== undefined && password !== "" && inForce !== credentialsHash(credentials);
}

function newPasswordAfter(before: DatabaseCredentials): DatabaseCredentials {
  return {
    [credentialKeys.password]: newPassword(randomInt),
    [credentialKeys.previousPassword]: before[credentialKeys.password] ?? "",
  };
}

/** @param changed new values by key; null removes one */
async function write(
  kube: KubeClient,
  { metadata: { namespace, name = "", uid, resourceVersion } = {} }: CredentialsSecret,
  before: DatabaseCredentials,
  changed: Readonly<Record<string, string | null>>,
): Promise<DatabaseCredentials> {
  const removed = Object.keys(changed).filter((key) => changed[key] === null);
  const after = Object.fromEntries(
    Object.entries({ ...before, ...changed }).filter((one): one is [string, string] => one[1] !== null),
  );
  const written = Object.fromEntries(Object.entries(after).filter(([key]) => key in changed));
  const data = { ...encodeCredentials(written), ...Object.fromEntries(removed.map((key) => [key, null])) };
  // Only the version that was read may be renewed: another call may be doing so.
  const patch = { metadata: { uid, resourceVersion }, data };
  await kube.patch(resources.secrets, { namespace, name }, patch, { fieldManager: fieldManagers.api });
  return after;
}
