import { equalJson } from "@slipway/controller-runtime";

type Json = Record<string, unknown>;

/**
 * The merge patch (RFC 7386) that makes one object into another; undefined when they are equal. Lists are replaced whole.
 * A member that is undefined counts as absent.
 */
export function mergePatch(from: object | undefined, to: object): Json | undefined {
  const patch: Json = {};
  const before = (from ?? {}) as Json;
  const after = to as Json;
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, wanted] = [before[key], after[key]];
    if (wanted === undefined) {
      if (old !== undefined) {
        patch[key] = null;
      }
    } else if (isObject(old) && isObject(wanted)) {
      const inner = mergePatch(old, wanted);
      if (inner) {
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
