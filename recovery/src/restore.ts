/** Restores the platform into a new installation. May be killed at any step, and repeated until it has ended. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { readArchive } from "./archive/file.ts";
import { createObjects } from "./create-objects.ts";
import type { Installation } from "./installation.ts";
import { loadLedger, rowsOfLedger } from "./ledger.ts";
import { startProcesses, stopProcesses } from "./processes.ts";
import { beginRestore, endRestore, noteLoaded } from "./progress.ts";
import type { Report } from "./report.ts";
import { type Uids, withUids } from "./restored-object.ts";
import { newestBackups, type Restorable, summaryOf } from "./summary.ts";

export interface Archive {
  /** All of its bytes; read more than once. */
  read(): AsyncIterable<Uint8Array>;
  /** Private key of age, `AGE-SECRET-KEY-1...`. */
  identity: string;
}

/**
 * @returns what came back, and what did not: databases without a backup in a bucket are empty
 * @throws Error when the archive is not whole, or the installation is in use
 */
export async function restore(
  installation: Installation,
  archive: Archive,
  report: Report,
): Promise<Restorable> {
  report("archive: reading all of it");
  const { id, objects, backups } = await inspect(archive);
  report("installation: is it new?");
  const isLoaded = await beginRestore(installation, id, () => rowsOfLedger(installation));
  if (!isLoaded) {
    report("processes: stopping");
    await stopProcesses(installation);
    report("objects");
    const uids = await createObjects(installation, objectsIn(archive), backups);
    report("ledger");
    await loadLedger(installation, ledgerIn(archive, uids));
    await noteLoaded(installation, id);
  }
  report("processes: starting");
  await startProcesses(installation);
  await endRestore(installation, id);
  report("end");
  return objects;
}

/** Reads all of an archive, and keeps what is in it by number. */
export async function inspect(archive: Archive): Promise<{
  id: string;
  createdAt: string;
  objects: Restorable;
  backups: ReadonlyMap<string, string>;
  /** Rows of the ledger by table; undefined in archives that do not say so. */
  ledgerRows: Record<string, number> | undefined;
}> {
  let ledgerRows: Record<string, number> | undefined;
  let header = { id: "", createdAt: "" };
  const backups = newestBackups();
  const summary = summaryOf();
  for await (const record of readArchive(archive.read(), archive.identity)) {
    if (record.type === "header") {
      header = record;
    } else if (record.type === "object") {
      backups.add(record.object);
      summary.add(record.object);
    } else if (record.type === "end") {
      ({ ledgerRows } = record);
    }
  }
  return { ...header, backups: backups.names(), objects: summary.result(backups.names()), ledgerRows };
}

/** Every object that it has, in order. */
export async function* objectsIn({ read, identity }: Archive): AsyncGenerator<KubernetesObject> {
  for await (const record of readArchive(read(), identity)) {
    if (record.type === "object") {
      yield record.object;
    }
  }
}

/** The SQL of its ledger, in pieces of whole lines. */
export async function* ledgerIn({ read, identity }: Archive, uids: Uids): AsyncGenerator<string> {
  for await (const record of readArchive(read(), identity)) {
    if (record.type === "ledger") {
      yield withUids(record.sql, uids);
    }
  }
}
