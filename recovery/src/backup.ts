/** Backs up the platform: objects first, then the ledger, which has at least what the objects say of it. */

import { createHash, randomUUID } from "node:crypto";
import { encryptArchive } from "./archive/file.ts";
import type { Location } from "./archive/location.ts";
import { archiveName, expiredNames, type Retention } from "./archive/name.ts";
import { ARCHIVE_FORMAT, type ArchiveRecord } from "./archive/record.ts";
import type { ArchiveStorage } from "./archive/storage.ts";
import type { Installation } from "./installation.ts";
import { dumpLedger, type LedgerDump } from "./ledger.ts";
import { objectsOf } from "./objects.ts";
import type { Report } from "./report.ts";
import { rowCounter } from "./sql-pieces.ts";

/** What a backup has. */
export interface BackedUp {
  id: string;
  /** When it was begun, RFC 3339. */
  createdAt: string;
  /** Its file or object. */
  file: string;
  name: string;
  /** Of the encrypted bytes, in hex. */
  sha256: string;
  bytes: number;
  /** Objects by kind. */
  objects: Record<string, number>;
  ledgerBytes: number;
  /** Rows of the ledger by table. */
  ledgerRows: Record<string, number>;
}

/**
 * Writes everything that a new cluster needs to one encrypted archive: custom resources, Secrets, the ledger. Nothing is written to
 * the cluster.
 * @param to a place in which it has a name of its own, or a name
 * @param recipients public keys of age, `age1...`
 * @param dump of the ledger; by `pg_dump` in the ledger's pod unless given
 * @throws Error with code `EEXIST` when the name is taken
 */
export async function backUp(
  installation: Installation,
  to: Location,
  recipients: readonly string[],
  report: Report,
  dump: LedgerDump = () => dumpLedger(installation),
): Promise<BackedUp> {
  const [id, createdAt] = [randomUUID(), new Date().toISOString()];
  const objects: Record<string, number> = {};
  const rows = rowCounter();
  let ledgerBytes = 0;
  async function* records(): AsyncGenerator<ArchiveRecord> {
    yield { type: "header", format: ARCHIVE_FORMAT, id, createdAt };
    report("objects");
    for await (const object of objectsOf(installation)) {
      const kind = object.kind ?? "";
      objects[kind] = (objects[kind] ?? 0) + 1;
      yield { type: "object", object };
    }
    report("ledger");
    for await (const sql of dump()) {
      ledgerBytes += Buffer.byteLength(sql);
      rows.add(sql);
      yield { type: "ledger", sql };
    }
    const count = Object.values(objects).reduce((sum, some) => sum + some, 0);
    yield { type: "end", objects: count, ledgerBytes, ledgerRows: rows.rows() };
  }
  const { storage, name = archiveName(createdAt, id) } = to;
  const hash = createHash("sha256");
  const bytes = await storage.write(name, hashed(encryptArchive(recipients, records()), hash));
  const file = `${storage.place}${storage.place.endsWith("/") ? "" : "/"}${name}`;
  const sha256 = hash.digest("hex");
  return { id, createdAt, file, name, sha256, bytes, objects, ledgerBytes, ledgerRows: rows.rows() };
}

/** Deletes archives that have expired. Files of other names stay. @returns their names */
export async function removeExpired(
  storage: ArchiveStorage,
  retention: Retention,
  now: Date,
): Promise<string[]> {
  const names = (await storage.list()).map(({ name }) => name);
  const expired = expiredNames(names, retention, now);
  for (const name of expired) {
    await storage.delete(name);
  }
  await storage.removeUnfinished();
  return expired;
}

/** The same bytes, which a hash receives on their way. */
export async function* hashed(
  bytes: AsyncIterable<Uint8Array>,
  hash: { update(chunk: Uint8Array): unknown },
): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    hash.update(chunk);
    yield chunk;
  }
}
