import { createHash } from "node:crypto";
import type { KubeClient } from "@slipway/controller-runtime";
import { type CreateProjectRequest, isDatabaseType, type Project } from "@slipway/crds";
import {
  completeIdempotencyKey,
  findIdempotencyRecord,
  type IdempotencyRecord,
  type KeyName,
} from "@slipway/ledger";
import { decodeCredentials, readCredentialsSecret } from "../../databases/connection.ts";
import { failures } from "../../errors/catalog.ts";
import { Failure } from "../../errors/failure.ts";
import { newProjectId } from "../../ids.ts";
import { withLedgerErrors } from "../../ledger/availability.ts";
import type { Services } from "../../services.ts";
import type { ApiProject } from "../api-project.ts";
import type { ChangeServices } from "../change.ts";
import { type IdempotencyLock, withIdempotencyLock } from "./idempotency-lock.ts";
import { type Attempt, type Created, failedAttempt } from "./outcome.ts";
import { isCreated, isDeleting, readLive } from "./write.ts";

/** A hash that does not depend on the order in which a client writes an object's members. */
export function bodyHash(body: unknown): Buffer {
  return createHash("sha256")
    .update(JSON.stringify(sorted(body ?? null)))
    .digest();
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  );
}

export interface KeyedRequest extends KeyName {
  /** As it was sent: the result of a template may change. */
  body: unknown;
}

/** The two steps of a creation. */
export interface Steps {
  /** Checks the request. @throws Failure */
  admit: () => Promise<CreateProjectRequest>;
  /** Creates the project under this id; `leftover`: or completes its creation. */
  create: (request: CreateProjectRequest, projectId: string, leftover: boolean) => Promise<Attempt>;
}

/**
 * Runs a creation once per key. A repeat is answered from its key, whatever has changed since. The key is committed with
 * the project's id before anything is written, so what a crash leaves is finished by the next try; a refusal frees the
 * key once nothing is left. The call that completes the key returns a database's credentials, and no repeat does: the ledger never
 * has them.
 *
 * @throws Failure 409 when the key came with another body before
 */
export async function onceByKey(
  { organizationId, key, body }: KeyedRequest,
  services: ChangeServices & Pick<Services, "ledger" | "logger">,
  { admit, create }: Steps,
): Promise<Created> {
  const { ledger } = services;
  const name = { organizationId, key };
  const bodySha256 = bodyHash(body);
  const existing = async (record: IdempotencyRecord): Promise<Created | undefined> => {
    if (!record.body_sha256.equals(bodySha256)) {
      throw failures.idempotencyKeyConflict();
    }
    return record.completed_at === null ? undefined : { project: await findCreated(record, services) };
  };
  const before = await withLedgerErrors(() => findIdempotencyRecord(ledger, name));
  const created = before && (await existing(before));
  if (created) {
    return created;
  }
  // A first call that is refused leaves no trace of its key.
  const admitted = before ? undefined : await admit();
  return withIdempotencyLock(ledger, name, bodySha256, newProjectId, existing, async (lock) => {
    const finished = lock.leftover ? await findFinished(name, lock, services) : undefined;
    const attempt = finished ?? (await tryOnce());
    if ("failure" in attempt) {
      await undoAttempt(attempt, lock);
      throw attempt.failure;
    }
    const completed = await withLedgerErrors(() =>
      completeIdempotencyKey(ledger, name, lock.projectId, services.now()),
    );
    if (!completed) {
      throw failures.creationInProgress();
    }
    return attempt;

    async function tryOnce(): Promise<Attempt> {
      const { projectId, leftover } = lock;
      try {
        return await create(admitted ?? (await admit()), projectId, leftover);
      } catch (error) {
        return failedAttempt(error, { organizationId, projectId }, services);
      }
    }
  });
}

/** A project that an earlier call wrote to the end, but could not say so. @throws Failure 503 */
async function findFinished(
  { organizationId }: KeyName,
  { projectId }: IdempotencyLock,
  { kube, projects }: Pick<Services, "kube" | "projects">,
): Promise<Created | undefined> {
  const live = await readLive(kube, { organizationId, projectId }).catch((error: unknown) => {
    throw failures.clusterUnavailable(error);
  });
  if (live === undefined) {
    return undefined;
  }
  if (isDeleting(live)) {
    throw failures.creationInProgress();
  }
  // Whether its first build was requested is not known: creating it again finishes that, too.
  if (!isCreated(live) || live.spec.source !== undefined) {
    return undefined;
  }
  const credentials = isDatabaseType(live.spec.type) ? await credentialsOf(live, kube) : undefined;
  return { project: await projects.observe(live), ...(credentials ? { credentials } : {}) };
}

/** No client received them: the earlier call had no answer. @throws Failure 503 */
async function credentialsOf({ metadata }: Project, kube: KubeClient) {
  const secret = await readCredentialsSecret(kube, metadata).catch((error: unknown) => {
    throw failures.clusterUnavailable(error);
  });
  return secret && decodeCredentials(secret);
}

/**
 * Frees the key after a refusal, when nothing is left. Otherwise the next attempt continues under the same id.
 * @throws Failure 503 when the ledger is unavailable
 */
async function undoAttempt(
  { undo }: Extract<Attempt, { failure: unknown }>,
  lock: IdempotencyLock,
): Promise<void> {
  if (undo === undefined || !(await lock.isOurs())) {
    return;
  }
  const undone = await undo().catch((error: unknown) => {
    if (error instanceof Failure) {
      throw error;
    }
    return false;
  });
  if (undone) {
    await lock.free();
  }
}

async function findCreated(
  record: IdempotencyRecord,
  { projects }: Pick<Services, "projects">,
): Promise<ApiProject> {
  const project = await projects.find(record.organization_id, record.project_id);
  if (!project || isDeleting(project.resource)) {
    throw failures.projectAlreadyDeleted();
  }
  return project;
}
