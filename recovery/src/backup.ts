/** Backs up the platform: objects first, then the ledger, which has at least what the objects say of it. */

import { randomUUID } from "node:crypto";
import { writeArchive } from "./archive/file.ts";
import { ARCHIVE_FORMAT, type ArchiveRecord } from "./archive/record.ts";
import type { Installation } from "./installation.ts";
import { dumpLedger } from "./ledger.ts";
import { objectsOf } from "./objects.ts";
import type { Report } from "./report.ts";

/** What a backup has. */
export interface BackedUp {
  id: string;
  file: string;
  /** Objects by kind. */
  objects: Record<string, number>;
  ledgerBytes: number;
}

/**
 * Writes everything that a new cluster needs to one file: custom resources, Secrets, the ledger. Nothing is written to the cluster.
 * @param recipients public keys of age, `age1...`
 * @throws Error with code `EEXIST` when the file exists
 */
export async function backUp(
  installation: Installation,
  file: string,
  recipients: readonly string[],
  report: Report,
): Promise<BackedUp> {
  const id = randomUUID();
  const objects: Record<string, number> = {};
  let ledgerBytes = 0;
  async function* records(): AsyncGenerator<ArchiveRecord> {
    yield { type: "header", format: ARCHIVE_FORMAT, id, createdAt: new Date().toISOString() };
    report("objects");
    for await (const object of objectsOf(installation)) {
      const kind = object.kind ?? "";
      objects[kind] = (objects[kind] ?? 0) + 1;
      yield { type: "object", object };
    }
    report("ledger");
    for await (const sql of dumpLedger(installation)) {
      ledgerBytes += Buffer.byteLength(sql);
      yield { type: "ledger", sql };
    }
    const count = Object.values(objects).reduce((sum, some) => sum + some, 0);
    yield { type: "end", objects: count, ledgerBytes };
  }
  await writeArchive(file, recipients, records());
  return { id, file, objects, ledgerBytes };
}
