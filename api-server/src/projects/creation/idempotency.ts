import { createHash } from "node:crypto";
import {
  completeIdempotencyKey,
  type IdempotencyRecord,
  releaseIdempotencyKey,
  reserveIdempotencyKey,
} from "@slipway/ledger";
import { failures } from "../../errors/catalog.ts";
import { Failure } from "../../errors/failure.ts";
import { newProjectId } from "../../ids.ts";
import { askLedger } from "../../ledger-call.ts";
import type { Services } from "../../services.ts";
import type { ApiProject } from "../api-project.ts";

/** A hash that does not depend on the order in which a client writes an object's members. */
export function bodyHash(body: unknown): Buffer {
  return createHash("sha256")
    .update(JSON.stringify(sorted(body)))
    .digest();
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  );
}

export interface KeyedRequest {
  organizationId: string;
  key: string;
  body: unknown;
}

/**
 * Runs a creation once per key. The key is committed with the project's id before anything is written, so a crash in
 * between is finished by the next try; a refusal frees the key.
 *
 * @param create makes the project under the id it is given, or finishes making it
 * @throws Failure 409 when the key came with another body before
 */
export async function onceByKey(
  { organizationId, key, body }: KeyedRequest,
  services: Services,
  create: (projectId: string) => Promise<ApiProject>,
): Promise<ApiProject> {
  const { ledger } = services;
  const bodySha256 = bodyHash(body);
  const record = await askLedger(() =>
    reserveIdempotencyKey(ledger, { organizationId, key, bodySha256, projectId: newProjectId() }),
  );
  if (!record.body_sha256.equals(bodySha256)) throw failures.idempotencyKeyConflict();
  if (record.completed_at !== null) return findCreated(record, services);
  try {
    const project = await create(record.project_id);
    await askLedger(() => completeIdempotencyKey(ledger, organizationId, key, services.now()));
    return project;
  } catch (error) {
    if (isRefusal(error)) {
      await askLedger(() => releaseIdempotencyKey(ledger, organizationId, key, record.project_id));
    }
    throw error;
  }
}

async function findCreated(record: IdempotencyRecord, { projects }: Services): Promise<ApiProject> {
  const project = await projects.find(record.organization_id, record.project_id);
  if (!project) throw failures.projectAlreadyDeleted();
  return project;
}

/** After a refusal nothing of the project exists; after a 5xx something may. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof Failure && (error.status < 500 || error.code === "ORGANIZATION_RUNTIME_UNAVAILABLE")
  );
}
