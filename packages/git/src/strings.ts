/** What may come from a Git server: each string with its bound, checked while the answer is parsed. */

import { z } from "zod";

/** Longest name of a branch or a tag, in characters. */
export const REF_NAME_MAX_LENGTH = 255;

/** Longest title of a commit that is kept, in characters; the rest is cut off. */
const TITLE_MAX_LENGTH = 512;

/** Name of a branch or a tag; undefined for one that is longer than any that is built from. */
export const refName = z
  .string()
  .transform((name) => (name === "" || name.length > REF_NAME_MAX_LENGTH ? undefined : name));

/** A name, a path or a moment: nothing that has more characters is one. */
export const bounded = (max: number) => z.string().max(max);

/** Hexadecimal id of a commit, SHA-1 or SHA-256. */
export const sha = z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/);

/** An address for people; undefined for one that no browser takes. */
export const webUrl = z
  .string()
  .transform((url) => (url.length > 2_048 ? undefined : url))
  .optional();

/** The first line of a commit's message, cut to a bound. */
export const title = z
  .string()
  .transform((message) => message.slice(0, TITLE_MAX_LENGTH).split("\n", 1)[0]?.trimEnd() ?? "");
