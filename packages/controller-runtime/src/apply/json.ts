import { createHash } from "node:crypto";

/** Whether two values are the same JSON; an absent field equals an undefined one. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) {
    return true;
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) {
    return false;
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) {
      return false;
    }
    return a.every((item, index) => equalJson(item, b[index]));
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    if (!equalJson(left[key], right[key])) {
      return false;
    }
  }
  return true;
}

/** JSON with the keys of every object sorted, so that equal values give equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (typeof item !== "object" || item === null || Array.isArray(item)) {
      return item;
    }
    return Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
  });
}

/** The first 32 hexadecimal digits of the SHA-256 of the canonical JSON. */
export function hashJson(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex").slice(0, 32);
}

type Json = Record<string, unknown>;

/**
 * The JSON merge patch (RFC 7396) that changes `before` into `after`. It contains only what differs, so that other writers
 * keep the rest. Pure. Lists are replaced as a whole; a member that is undefined counts as absent.
 * @returns undefined when nothing differs
 */
export function mergePatch(before: object | undefined, after: object): Json | undefined {
  const patch: Json = {};
  const [from, to] = [(before ?? {}) as Json, after as Json];
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [old, wanted] = [from[key], to[key]];
    if (wanted === undefined) {
      if (old !== undefined) {
        patch[key] = null;
      }
    } else if (isObject(old) && isObject(wanted)) {
      const inner = mergePatch(old, wanted);
      if (inner !== undefined) {
        patch[key] = inner;
      }
    } else if (!equalJson(old, wanted)) {
      patch[key] = wanted;
    }
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
