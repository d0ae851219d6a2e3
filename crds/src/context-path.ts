/** Longest path in a repository, in characters. */
export const CONTEXT_PATH_MAX_LENGTH = 256;

// A character of a segment, and one that is no dot either.
const CHARACTER = "[^/\\\\\\p{Cc}]";
const NOT_DOT = "[^/.\\\\\\p{Cc}]";
// A segment is neither empty nor `.` nor `..`; RE2 has no lookahead, so the cases are spelled out.
const SEGMENT = `(${NOT_DOT}${CHARACTER}*|\\.${NOT_DOT}${CHARACTER}*|\\.\\.${CHARACTER}+)`;

/** A normalized relative path inside a repository: no absolute path, no `.` or `..` segment, no backslash. */
export const CONTEXT_PATH = new RegExp(`^(\\.|${SEGMENT}(/${SEGMENT})*)$`, "u");

/** Removes surrounding whitespace, a leading `./` and a trailing `/`; an empty path becomes `.`. */
export function normalizeContextPath(text: string): string {
  const path = text.trim().replace(/^\.\//, "").replace(/\/$/, "");
  return path === "" ? "." : path;
}
