/** Proves a backup: all of it is read, its ledger loaded into a server for tests, its objects created by dry runs. */

import { createHash } from "node:crypto";
import type { VerifiedPlatformBackup } from "@slipway/crds";
import { type Location, nameIn } from "./archive/location.ts";
import { hashed } from "./backup.ts";
import { createDry } from "./dry-run.ts";
import type { Installation } from "./installation.ts";
import { checkRows } from "./jobs/scratch-ledger.ts";
import { loadInto } from "./jobs/sidecar.ts";
import type { Report } from "./report.ts";
import { type Archive, inspect, ledgerIn, objectsIn } from "./restore.ts";
import { rowCounter } from "./sql-pieces.ts";

export interface Verification {
  from: Location;
  /** Private key of age. */
  identity: string;
  /** Checksum of the last backup that the platform's own job has stored. */
  stored?: { name: string; sha256: string };
  /** For dry runs. */
  namespace: string;
  /** With the pipe and the socket of a PostgreSQL server without a ledger. */
  scratch: string;
}

/** @throws Error that says what of the newest backup cannot be restored */
export async function verify(
  { client }: Installation,
  { from, identity, stored, namespace, scratch }: Verification,
  report: Report,
): Promise<Pick<VerifiedPlatformBackup, "name" | "objects" | "ledgerRows">> {
  const name = await nameIn(from);
  const hash = createHash("sha256");
  const read = () => from.storage.read(name);
  report(`archive: reading all of ${from.storage.place}${name}`);
  const inspected = inspect({ read: () => hashed(read(), hash), identity });
  const { backups, ledgerRows } = await inspected.catch((error: Error) => {
    throw new Error(`${name} cannot be read: ${error.message}`, { cause: error });
  });
  // Anyone who knows the public key can encrypt for it: a valid archive may still be another than was stored.
  if (stored?.name === name && stored.sha256 !== hash.digest("hex")) {
    throw new Error(`${name} is not what was stored: its checksum differs`);
  }
  const archive: Archive = { read, identity };
  report("objects: creating them by dry runs");
  const objects = await createDry(client, namespace, objectsIn(archive), backups);
  report("ledger: loading it into a server for tests");
  const counter = rowCounter();
  await loadInto(scratch, counted(ledgerIn(archive, new Map()), counter));
  const expected = ledgerRows ?? counter.rows();
  await checkRows(scratch, expected);
  return { name, objects, ledgerRows: expected };
}

async function* counted(sql: AsyncIterable<string>, counter: { add(sql: string): void }) {
  for await (const piece of sql) {
    counter.add(piece);
    yield piece;
  }
}
