import { z } from "zod";
import type { Principal } from "../../auth/principal.ts";
import { failures } from "../../errors/catalog.ts";
import { beginCallAudit } from "../../http/audit.ts";
import { requireCreation } from "../../http/guard.ts";
import { defineRoute } from "../../http/route.ts";
import { newProjectId } from "../../ids.ts";
import { policyOf } from "../../policy/table.ts";
import { idempotencyKeyErrors, isIdempotencyKey } from "../../projects/creation/body.ts";
import { admitCreation, createProject } from "../../projects/creation/create.ts";
import { onceByKey } from "../../projects/creation/idempotency.ts";
import { createdData, createProjectData, orFailure } from "../../projects/routes/create.ts";
import { idempotencyKeyHeader, success } from "../../projects/routes/schemas.ts";
import { type RestoreBody, restoreBody, restoreRequest } from "../restore.ts";
import { backupOf } from "./lookup.ts";

export const restoreBackup = defineRoute({
  operationId: "restoreBackup",
  method: "POST",
  path: "/v1/project/:id/backups/:backupId/restore",
  summary: "Restore a backup into a new project",
  description:
    "A new project, of the same engine and version, with a password of its own: what is not sent is as the old one had " +
    "it. It is `running` once the backup is loaded. The old project, if it is still there, stays as it is. Beside " +
    "project.backup.restore it needs the permission to create such a project.",
  tags: ["Backups"],
  body: restoreBody,
  headers: z.object({ "idempotency-key": idempotencyKeyHeader("One key stands for one new project.") }),
  responses: {
    201: {
      description: "Created; it starts, and is filled, in the background.",
      schema: success({ message: z.string(), data: createProjectData }),
    },
  },
  refusals: [402, 409],
  beginsAudit: true,
  handler: async (call, services) => {
    const { request } = call;
    const principal = call.principal as Principal;
    const { organizationId } = principal;
    const key = request.headers["idempotency-key"];
    const errors = idempotencyKeyErrors(key);
    if (errors.length > 0) {
      throw failures.validation(errors);
    }
    const backup = await backupOf(call, services);
    const access = policyOf("createProject")?.access;
    if (access?.kind === "create") {
      requireCreation(principal, access, backup.status?.engine);
    }
    const admit = async () => {
      const wanted = restoreRequest(backup, call.body as RestoreBody, services);
      await admitCreation(wanted, organizationId, services);
      return wanted;
    };
    const create = async (
      wanted: Parameters<typeof createProject>[0],
      projectId: string,
      leftover = false,
    ) => {
      await beginCallAudit(request, services, { projectId });
      return createProject(wanted, { organizationId, projectId, leftover }, services);
    };
    const body = { restore: backup.metadata.name, ...(call.body as RestoreBody) };
    const created = isIdempotencyKey(key)
      ? await onceByKey({ organizationId, key, body }, services, { admit, create })
      : await orFailure(await create(await admit(), newProjectId()));
    request.writtenProjectId = created.project.id;
    const data = await createdData(created, services);
    return {
      status: 201,
      headers: { "cache-control": "no-store" },
      body: { status: "success", message: "the backup is being restored", data },
    };
  },
});
