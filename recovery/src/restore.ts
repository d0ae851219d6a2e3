/** Restores the platform into a new installation. May be killed at any step, and repeated until it has ended. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { readArchive } from "./archive/file.ts";
import { createObjects } from "./create-objects.ts";
import { type LedgerPlace, loadLedger, rowsOfLedger } from "./ledger.ts";
import { startProcesses, stopProcesses } from "./processes.ts";
import { beginRestore, endRestore, noteLoaded } from "./progress.ts";
import type { Report } from "./report.ts";
import { type Uids, withUids } from "./restored-object.ts";
import { newestBackups, type Restorable, summaryOf } from "./summary.ts";

export interface Archive {
  file: string;
  /** Private key of age, `AGE-SECRET-KEY-1...`. */
  identity: string;
}

/**
 * @returns what came back, and what did not: databases without a backup in a bucket are empty
 * @throws Error when the archive is not whole, or the installation is in use
 */
export async function restore(place: LedgerPlace, archive: Archive, report: Report): Promise<Restorable> {
  report("archive: reading all of it");
  const { id, objects, backups } = await inspect(archive);
  report("installation: is it new?");
  const isLoaded = await beginRestore(place, id, () => rowsOfLedger(place));
  if (!isLoaded) {
    report("processes: stopping");
    await stopProcesses(place.client, place.namespace, place.signal);
    report("objects");
    const uids = await createObjects(place, objectsIn(archive), backups);
    report("ledger");
    await loadLedger(place, ledgerIn(archive, uids));
    await noteLoaded(place, id);
  }
  report("processes: starting");
  await startProcesses(place.client, place.namespace, place.signal);
  await endRestore(place, id);
  report("end");
  return objects;
}

/** Reads all of an archive, and keeps what is in it by number. */
export async function inspect(archive: Archive): Promise<{
  id: string;
  createdAt: string;
  objects: Restorable;
  backups: ReadonlyMap<string, string>;
}> {
  let header = { id: "", createdAt: "" };
  const backups = newestBackups();
  const summary = summaryOf();
  for await (const record of readArchive(archive.file, archive.identity)) {
    if (record.type === "header") {
      header = record;
    } else if (record.type === "object") {
      backups.add(record.object);
      summary.add(record.object);
    }
  }
  return { ...header, backups: backups.names(), objects: summary.result(backups.names()) };
}

async function* objectsIn({ file, identity }: Archive): AsyncGenerator<KubernetesObject> {
  for await (const record of readArchive(file, identity)) {
    if (record.type === "object") {
      yield record.object;
    }
  }
}

async function* ledgerIn({ file, identity }: Archive, uids: Uids): AsyncGenerator<string> {
  for await (const record of readArchive(file, identity)) {
    if (record.type === "ledger") {
      yield withUids(record.sql, uids);
    }
  }
}
