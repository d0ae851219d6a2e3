import { equalJson } from "./json.ts";

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
