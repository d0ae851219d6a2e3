type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The JSON merge patch (RFC 7396) that makes `after` of `before`: only what differs is in it, so whoever owns the rest
 * keeps it. Pure. Lists are replaced as a whole; a member that is undefined counts as absent.
 * @returns undefined when nothing differs
 */
export function mergePatch(before: Json, after: Json): Json | undefined {
  const patch: Json = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, wanted] = [before[key], after[key]];
    if (wanted === undefined) {
      if (old !== undefined) {
        patch[key] = null;
      }
    } else if (isObject(old) && isObject(wanted)) {
      const inner = mergePatch(old, wanted);
      if (inner !== undefined) {
        patch[key] = inner;
      }
    } else if (!isSame(old, wanted)) {
      patch[key] = wanted;
    }
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/** Whether two JSON values are equal; the order of an object's members does not matter. */
function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => isSame(item, b[index]));
  }
  if (isObject(a) && isObject(b)) {
    return mergePatch(a, b) === undefined;
  }
  return a === b;
}
