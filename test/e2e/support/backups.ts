import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { stateDir } from "../../../hack/lib/paths.ts";
import type { apiClient } from "./api.ts";
import { cluster } from "./cluster.ts";
import { type Connection, type DatabaseProject, untilReady } from "./databases.ts";
import { eventually } from "./eventually.ts";
import { namespaceOf, stack } from "./stack.ts";

type Call = ReturnType<typeof apiClient>;

/** A backup, as `/v1` shows it. */
export interface Backup {
  readonly id: string;
  readonly status: string;
  readonly trigger: string;
  readonly requested_at: string;
  readonly size_bytes: number | null;
  readonly contents: { tables: number | null; rows: number | null; keys: number | null } | null;
  readonly last_verified_at: string | null;
  readonly verification: { status: string; message?: string } | null;
  readonly message?: string;
}

export async function readBackup(call: Call, project: string, id: string): Promise<Backup> {
  const { status, body } = await call<{ backup: Backup }>("GET", `/v1/project/${project}/backups/${id}`);
  expect(status).toBe(200);
  return (body.data as { backup: Backup }).backup;
}

/** Requests a backup; its id. */
export async function askForBackup(call: Call, project: string): Promise<string> {
  const asked = await call<{ backup: Backup }>("POST", `/v1/project/${project}/backups`);
  expect(asked).toMatchObject({ status: 202, body: { status: "success" } });
  return (asked.body.data as { backup: Backup }).backup.id;
}

/** Waits until a backup has a status. */
export function untilBackup(call: Call, project: string, id: string, status = "succeeded"): Promise<Backup> {
  return eventually(async () => {
    const backup = await readBackup(call, project, id);
    expect(backup.status, backup.message).toBe(status);
    return backup;
  });
}

/** Makes a backup, and waits until it is stored. */
export async function backUp(call: Call, project: string): Promise<Backup> {
  return untilBackup(call, project, await askForBackup(call, project));
}

/** All backups of a project, the newest first. */
export async function listBackups(call: Call, project: string): Promise<Backup[]> {
  const { status, body } = await call<{ backups: Backup[] }>("GET", `/v1/project/${project}/backups`);
  expect(status).toBe(200);
  return (body.data as { backups: Backup[] }).backups;
}

/** Deletes a backup, and waits until it and its stored data do not exist. */
export async function deleteBackup(call: Call, project: string, id: string): Promise<void> {
  const path = `/v1/project/${project}/backups/${id}`;
  await eventually(async () => expect((await call("DELETE", path)).status).toBeOneOf([202, 404, 409]));
  await eventually(async () => expect((await call("GET", path)).status).toBe(404));
}

/** Pods that work on a backup, by name. */
export async function podsOfBackup(id: string, namespace: string): Promise<string[]> {
  const labelSelector = `slipway.dev/backup=${id}`;
  const { items } = await cluster.core.listNamespacedPod({ namespace, labelSelector });
  return items.map(({ metadata }) => metadata?.name ?? "");
}

/** Files of a project's backups on the embedded cluster's volumes. */
export async function backupFiles(project: string): Promise<string[]> {
  const volumes = join(stateDir, "volumes");
  const names = (await readdir(volumes)).filter((name) => name.endsWith("_slipway-backups"));
  const lists = await Promise.all(names.map((name) => readdir(join(volumes, name, project)).catch(() => [])));
  return lists.flat();
}

/** Makes a new project from a backup, and waits until it is ready. */
export async function restore(
  call: Call,
  project: string,
  backup: string,
  name: string,
): Promise<DatabaseProject> {
  interface Created {
    project_id: string;
  }
  const path = `/v1/project/${project}/backups/${backup}/restore`;
  const { status, body } = await call<Created>("POST", path, { name });
  expect(body).toMatchObject({ status: "success" });
  expect(status).toBe(201);
  const place = { id: (body.data as Created).project_id, namespace: namespaceOf(stack.organization) };
  await untilReady(place);
  // The address may have come after the answer: the password is then to be renewed, and may be anyway.
  const renewed = await call<{
    connection: Connection;
    managed_service?: { connection_string: string };
  }>("POST", `/v1/project/${place.id}/database/credentials/renew`);
  expect(renewed.status).toBe(200);
  const { connection } = renewed.body.data as { connection: Connection };
  const restored = { ...place, connection };
  await untilReady(restored);
  return restored;
}

/** Has a backup tried, and waits for what is found. */
export async function verify(call: Call, project: string, id: string): Promise<Backup> {
  const asked = await call("POST", `/v1/project/${project}/backups/${id}/verify`);
  expect(asked.status).toBe(202);
  return eventually(async () => {
    const backup = await readBackup(call, project, id);
    expect(backup.verification?.status).not.toBe("running");
    return backup;
  });
}
