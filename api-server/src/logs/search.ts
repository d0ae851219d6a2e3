import { createHash } from "node:crypto";
import type { FoundLine, LogCursor, Window } from "@slipway/analytics";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";

/** Which window a search is about, where it goes on, and how much one answer has. Pure. */

const DEFAULT_RANGE_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** How far ahead a window may end: clocks of nodes may be ahead, and a later moment is none that the store has. */
const AHEAD_MS = DAY_MS;

/** Bytes of the texts of one answer as JSON; a line that would exceed it begins the next page. */
export const MAX_PAGE_BYTES = 1024 * 1024;

/** The last line of a page, and the search and the window that all pages are about. */
export interface SearchCursor {
  /** What {@link searchId} gives of it. */
  search: string;
  window: Window;
  after: LogCursor;
}

const MOMENT = z.int().min(0).max(8_640_000_000_000);
const members = z.tuple([
  z.string().regex(/^[\w-]{16}$/),
  MOMENT,
  MOMENT,
  z.string().regex(/^\d{1,18}$|^[1-8]\d{18}$/),
  z.string().max(253),
  z.string().max(253),
  z.string().regex(/^[0-9a-f]{16}$/),
  z.int().min(0),
]);

/**
 * The window of a search, in milliseconds since the epoch: of the cursor's search, or the requested one as far as the plan keeps lines.
 * @param days for which it keeps them
 * @throws Failure 400 for one that ends before the plan's days, lies ahead, or is empty
 */
export function searchWindow(
  { from, to, cursor }: { from?: string; to?: string; cursor?: string },
  days: number,
  now: Date,
): Window {
  const earliest = now.getTime() - days * DAY_MS;
  const known = decodeCursor(cursor ?? "");
  if (known) {
    // It began within the plan's days; they have gone on since.
    return { from: Math.max(known.window.from, earliest), to: known.window.to };
  }
  const end = Math.min(to === undefined ? now.getTime() : Date.parse(to), now.getTime() + AHEAD_MS);
  const begin = from === undefined ? Math.min(end, now.getTime()) - DEFAULT_RANGE_MS : Date.parse(from);
  const refuse = (field: string, message: string) => failures.validation([{ field, message }]);
  if (end <= earliest) {
    throw refuse("to", `must be less than ${days} days ago: that is how long logs are kept on this plan`);
  }
  if (begin >= now.getTime()) {
    throw refuse("from", "must not lie ahead");
  }
  if (begin >= end) {
    throw refuse("from", "must be before to");
  }
  return { from: Math.max(begin, earliest), to: end };
}

/** A cursor as clients get it. They are not to read it, and it gives them nothing: each page is about their own project alone. */
export function encodeCursor({ search, window, after }: SearchCursor): string {
  const { at, instance, container, file, offset } = after;
  const values = [search, window.from, window.to, at, instance, container, file, offset];
  return Buffer.from(JSON.stringify(values)).toString("base64url");
}

/** @returns undefined for what {@link encodeCursor} has not made */
export function decodeCursor(text: string): SearchCursor | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
  const parsed = members.safeParse(value);
  if (!parsed.success) {
    return undefined;
  }
  const [search, from, to, at, instance, container, file, offset] = parsed.data;
  return { search, window: { from, to }, after: { at, instance, container, file, offset } };
}

/** Which lines a search finds in its window, and in which order. */
export interface Search {
  q?: string;
  level?: string;
  instance?: string;
  order: string;
}

/** Identifies a search of a project's lines: a cursor of one does not go on in another. */
export function searchId(project: string, { q, level, instance, order }: Search): string {
  const text = JSON.stringify([project, q ?? null, level ?? null, instance ?? null, order]);
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

/**
 * The lines of one page, at least one.
 * @param found lines in order, one more than fit where there are more
 */
export function pageOf(found: readonly FoundLine[], limit: number): { lines: FoundLine[]; isLast: boolean } {
  let bytes = 0;
  const tooMany = found.findIndex(({ size }, index) => {
    bytes += size;
    return index >= limit || (index > 0 && bytes > MAX_PAGE_BYTES);
  });
  return tooMany < 0
    ? { lines: [...found], isLast: true }
    : { lines: found.slice(0, tooMany), isLast: false };
}
