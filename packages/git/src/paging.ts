/** Pages of lists: what servers number, clients see as an opaque cursor. */

import { GitError } from "./errors.ts";

/** Items of one page. */
export const PAGE_SIZE = 50;
/** Pages of a list that is read whole. */
const MOST_PAGES = 20;

/** The cursor of a page. */
export function cursorOf(page: number): string {
  return Buffer.from(`page:${page}`).toString("base64url");
}

/** The page of a cursor; the first one without. @throws GitError CursorInvalid */
export function pageOf(cursor: string | undefined): number {
  if (cursor === undefined) {
    return 1;
  }
  const page = Number(/^page:([1-9][0-9]{0,4})$/.exec(Buffer.from(cursor, "base64url").toString())?.[1]);
  if (!Number.isInteger(page) || cursorOf(page) !== cursor) {
    throw new GitError("CursorInvalid", "the cursor is not one that was given out");
  }
  return page;
}

/** Bytes of all answers of one list. Releases include their notes, which are not read here. */
const LIST_BYTES = 16 * 1024 * 1024;

/** What is left of the bytes that a list may take. */
export interface ByteBudget {
  left: number;
}

/**
 * Every item of a list, at most 1,000.
 * @param read a page; it counts the answer's bytes against the budget
 */
export async function readAll<Item>(
  read: (page: number, budget: ByteBudget) => Promise<Item[]>,
): Promise<Item[]> {
  const items: Item[] = [];
  const budget = { left: LIST_BYTES };
  for (let page = 1; page <= MOST_PAGES; page += 1) {
    const found = await read(page, budget);
    items.push(...found);
    if (found.length < PAGE_SIZE) {
      break;
    }
  }
  return items.slice(0, PAGE_SIZE * MOST_PAGES);
}
