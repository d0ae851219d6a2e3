import { equalQuantities } from "./quantity.ts";

/** Maps of quantities (`requests`, `limits`, …) and single ones: the apiserver writes these in its own way. */
const QUANTITY_MAPS = new Set([
  "requests",
  "limits",
  "hard",
  "capacity",
  "default",
  "defaultRequest",
  "max",
  "min",
  "maxLimitRequestRatio",
  "overhead",
]);
const QUANTITY_FIELDS = new Set(["sizeLimit", "divisor", "averageValue"]);

/** Lists that server-side apply treats as sets: others may add to them. */
const SETS = new Set(["finalizers"]);

/**
 * Where the live object lacks something that is desired, as a dotted path; undefined when it lacks nothing.
 *
 * Fields that only the live object has are defaults or belong to others. Lists of objects with unique names are
 * compared by name, as server-side apply merges them; other lists must be equal in length and order. A quantity equals
 * another of the same amount, and an empty or zero value equals an absent one, since the apiserver drops those.
 */
export function findMissing(
  desired: unknown,
  live: unknown,
  path: readonly string[] = [],
): string | undefined {
  if (desired === undefined || desired === null) {
    return undefined;
  }
  if (live === undefined || live === null) {
    return isZero(desired) ? undefined : path.join(".");
  }
  if (Array.isArray(desired)) {
    return findMissingItem(desired, live, path);
  }
  if (typeof desired === "object") {
    if (typeof live !== "object" || Array.isArray(live)) {
      return path.join(".");
    }
    for (const [key, value] of Object.entries(desired)) {
      const missing = findMissing(value, (live as Record<string, unknown>)[key], [...path, key]);
      if (missing !== undefined) {
        return missing;
      }
    }
    return undefined;
  }
  if (desired === live) {
    return undefined;
  }
  return isQuantity(path) && equalQuantities(desired, live) ? undefined : path.join(".");
}

function findMissingItem(desired: unknown[], live: unknown, path: readonly string[]): string | undefined {
  if (!Array.isArray(live)) {
    return path.join(".");
  }
  if (SETS.has(path.at(-1) ?? "")) {
    return desired.every((item) => live.includes(item)) ? undefined : path.join(".");
  }
  const key = mergeKey(desired, live);
  if (key !== undefined) {
    const byKey = new Map(live.map((item) => [(item as Record<string, unknown>)[key], item as unknown]));
    for (const item of desired) {
      const name = (item as Record<string, unknown>)[key];
      const missing = findMissing(item, byKey.get(name) ?? undefined, [...path, String(name)]);
      if (missing !== undefined) {
        return missing;
      }
    }
    return undefined;
  }
  if (desired.length !== live.length) {
    return path.join(".");
  }
  for (const [index, item] of desired.entries()) {
    const missing = findMissing(item, live[index] as unknown, [...path, String(index)]);
    if (missing !== undefined) {
      return missing;
    }
    // In a list, an empty item is not the same as a missing one.
    if (isZero(item) !== isZero(live[index])) {
      return [...path, String(index)].join(".");
    }
  }
  return undefined;
}

/** The field by which two lists of objects can be matched. */
function mergeKey(desired: unknown[], live: unknown[]): string | undefined {
  if (desired.length === 0) {
    return undefined;
  }
  return ["uid", "name", "mountPath"].find((key) => isKeyed(desired, key) && isKeyed(live, key));
}

function isKeyed(items: unknown[], key: string): boolean {
  const names = items.map((item) =>
    typeof item === "object" && item !== null ? (item as Record<string, unknown>)[key] : undefined,
  );
  return names.every((name) => typeof name === "string") && new Set(names).size === names.length;
}

function isQuantity(path: readonly string[]): boolean {
  return QUANTITY_MAPS.has(path.at(-2) ?? "") || QUANTITY_FIELDS.has(path.at(-1) ?? "");
}

/** What the apiserver may leave out: null, false, 0, "", and empty lists and objects, nested ones too. */
function isZero(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === 0 || value === "") {
    return true;
  }
  if (Array.isArray(value)) {
    return value.length === 0;
  }
  return typeof value === "object" && Object.values(value).every(isZero);
}
