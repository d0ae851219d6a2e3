/** Merge patches over frozen objects: what a patch does not change stays the same object. */

/** The target after a merge patch (RFC 7386); the target itself when nothing changed. */
export function merged(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) {
    return same(target, patch) ? target : patch;
  }
  const before = isObject(target) ? target : {};
  let after: Record<string, unknown> | undefined = before === target ? undefined : {};
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === undefined) {
      continue;
    }
    if (value === null) {
      if (!(key in before)) {
        continue;
      }
      after ??= { ...before };
      delete after[key];
      continue;
    }
    const next = merged(before[key], value);
    if (next === before[key]) {
      continue;
    }
    after ??= { ...before };
    after[key] = next;
  }
  return after ?? target;
}

/** Freezes all of a value that is not frozen yet. */
export function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) {
    return value;
  }
  for (const key of Object.keys(value)) {
    freeze((value as Record<string, unknown>)[key]);
  }
  return Object.freeze(value);
}

/** A copy of what is sent, as JSON would carry it: no caller can change what the cluster stores. */
export function carried<T>(value: T): T {
  if (typeof value !== "object" || value === null) {
    return value;
  }
  if (Object.isFrozen(value) && !Array.isArray(value)) {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map(carried) as T;
  }
  if (value instanceof Date) {
    return value.toISOString() as T;
  }
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    if (item !== undefined) {
      copy[key] = carried(item);
    }
  }
  return copy as T;
}

function same(a: unknown, b: unknown): boolean {
  if (a === b) {
    return true;
  }
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) {
    return false;
  }
  return JSON.stringify(a) === JSON.stringify(b);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
