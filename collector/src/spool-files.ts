import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { STREAMS, type Stream } from "@slipway/analytics";
import { z } from "zod";
import type { Position } from "./container-log.ts";
import type { Owner } from "./traefik-names.ts";

/** What is recorded with a position, for a process that has read nothing before it. */
export interface WithPosition {
  /** Whose the log is, where only the cluster knows that: its pod may be deleted by then. */
  owner?: Owner;
  /** When the last line before it was written: nanoseconds since the epoch, as decimal digits. */
  at?: string;
  /** Outputs of which the last line before it goes on behind it. */
  within?: Stream[];
}

/** Where to continue in a container's log. */
export type KeptPosition = Position & WithPosition;

/** The same of each container's log, by the container's folder. */
export type Positions = Record<string, KeptPosition>;

/** A batch that waits on the disk. */
export interface Waiting {
  sequence: number;
  bytes: number;
  /** When it was made, in milliseconds since the epoch. */
  madeAt: number;
}

/** Events that are sent together, under an id that they have for good. */
export interface Batch<Event> {
  id: string;
  events: Event[];
}

export const positions = z.record(
  z.string(),
  z.object({
    file: z.string(),
    offset: z.number().int().min(0),
    owner: z.object({ organization: z.string(), project: z.string() }).optional(),
    at: z
      .string()
      .regex(/^-?\d{1,24}$/)
      .optional(),
    within: z.array(z.enum(STREAMS)).optional(),
  }),
);
export const cursor = z.object({ sequence: z.number().int().min(0), positions });
/** What a batch's file holds; its events were checked before they were written. */
export const stored = z.object({
  id: z.string().min(1),
  madeAt: z.number(),
  positions,
  events: z.array(z.custom<object>((value) => typeof value === "object" && value !== null)),
});
export type Stored = z.infer<typeof stored>;

export const CURSOR = "cursor.json";
export const BATCH = /^(\d{16})\.batch$/;
export const ASIDE = /^\d{16}\.batch\.(refused|damaged)$/;
/** How many files set aside are kept for inspection: the newest. The buffer's bound does not count them. */
export const MOST_ASIDE = 10;
export const pack = promisify(gzip);
export const unpack = promisify(gunzip);

export function nameOf(sequence: number): string {
  return `${String(sequence).padStart(16, "0")}.batch`;
}

/** An id that no other batch has: no two are made of the same stretch of the same files. */
export function idOf(sequence: number, madeAt: number, before: Positions, after: Positions): string {
  const text = JSON.stringify([sequence, madeAt, before, after]);
  return createHash("sha256").update(text).digest("hex").slice(0, 40);
}
