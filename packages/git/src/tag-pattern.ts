/** Tag patterns: the full tag name, case-sensitive, with the wildcards `*` (any sequence) and `?` (one character). */

/** Longest pattern, in characters. */
export const TAG_PATTERN_MAX_LENGTH = 255;

// Character classes, braces, negation, extended globs such as +(v), escapes and control characters are other glob syntax:
// refused, never guessed at.
const TAG_PATTERN = /^(?:[^\p{Cc}\\[\]{}!?*+@]|[?*+@]+(?:[^\p{Cc}\\[\]{}!?*+@(]|$))+$/u;

/** Whether a text may be a tag pattern. */
export function isTagPattern(text: string): boolean {
  return [...text].length <= TAG_PATTERN_MAX_LENGTH && TAG_PATTERN.test(text);
}

/**
 * Whether a tag's whole name fits the pattern. A character is a Unicode code point. Steps: pattern times tag at most, for
 * tenants write both; a regular expression could be made to run for ever.
 */
export function matchesTag(pattern: string, tag: string): boolean {
  const wanted = [...pattern];
  const given = [...tag];
  let at = 0;
  let star = -1;
  let resume = 0;
  for (let index = 0; index < given.length; ) {
    // A star in the pattern is a wildcard even where the tag has one, too.
    if (wanted[at] === "*") {
      star = at;
      resume = index;
      at += 1;
    } else if (at < wanted.length && (wanted[at] === "?" || wanted[at] === given[index])) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      resume += 1;
      index = resume;
      at = star + 1;
    } else {
      return false;
    }
  }
  while (wanted[at] === "*") {
    at += 1;
  }
  return at === wanted.length;
}
