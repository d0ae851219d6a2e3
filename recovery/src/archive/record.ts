/** What an archive of the platform consists of: one record a line, as JSON. Schemas only. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { z } from "zod";

/** Version of the records below. */
export const ARCHIVE_FORMAT = 1;
/** Bytes of one line at most: a piece of the ledger has a row more than its size, each of whose bytes may be six in JSON. */
export const MAX_LINE = 32 * 1024 * 1024;

const header = z.strictObject({
  type: z.literal("header"),
  format: z.literal(ARCHIVE_FORMAT),
  /** Identifies the backup. */
  id: z.uuid(),
  createdAt: z.iso.datetime(),
});
const object = z.strictObject({
  type: z.literal("object"),
  object: z.custom<KubernetesObject>(
    (value) => typeof (value as KubernetesObject | null)?.metadata?.name === "string",
  ),
});
/** Whole lines of what `pg_dump` writes as SQL. */
const ledger = z.strictObject({ type: z.literal("ledger"), sql: z.string() });
/** The last one: an archive without it is not whole. */
const end = z.strictObject({
  type: z.literal("end"),
  objects: z.int().min(0),
  ledgerBytes: z.int().min(0),
  /** Rows of the ledger by table, as `public.charges`. Archives of before have none. */
  ledgerRows: z.record(z.string().regex(/^\w+\.\w+$/), z.int().min(0)).optional(),
});

export const archiveRecord = z.discriminatedUnion("type", [header, object, ledger, end]);
export type ArchiveRecord = z.output<typeof archiveRecord>;
