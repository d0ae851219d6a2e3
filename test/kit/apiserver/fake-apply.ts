/** A small server-side apply: enough of its rules for tests, without conflicts between managers (as with `force`). */

type Json = Record<string, unknown>;

/**
 * The live object after a manager applied `next`, having applied `previous` before: fields of `next` are set, fields that
 * only `previous` had are removed, all else stays. Lists whose items have unique names merge by name.
 */
export function applyConfiguration(live: Json, previous: Json | undefined, next: Json): Json {
  const merged = previous ? (removeDropped(live, previous, next) as Json) : live;
  return merge(merged, next) as Json;
}

function merge(live: unknown, next: unknown): unknown {
  if (isObject(live) && isObject(next)) {
    const result: Json = { ...live };
    for (const [key, value] of Object.entries(next)) {
      result[key] = merge(live[key], value);
    }
    return result;
  }
  if (isNamed(live) && isNamed(next)) {
    const names = new Set(next.map((item) => item.name));
    const merged = next.map((item) => merge(find(live, item.name), item));
    return [...merged, ...live.filter((item) => !names.has(item.name))];
  }
  return structuredClone(next);
}

function removeDropped(live: unknown, previous: unknown, next: unknown): unknown {
  if (isObject(live) && isObject(previous)) {
    const wanted = isObject(next) ? next : {};
    const result: Json = {};
    for (const [key, value] of Object.entries(live)) {
      if (!(key in previous)) {
        result[key] = value;
      } else if (key in wanted) {
        result[key] = removeDropped(value, previous[key], wanted[key]);
      }
    }
    return result;
  }
  if (isNamed(live) && isNamed(previous) && isNamed(next)) {
    return live
      .filter((item) => !find(previous, item.name) || find(next, item.name))
      .map((item) => removeDropped(item, find(previous, item.name), find(next, item.name)));
  }
  return live;
}

function find(items: Json[], name: unknown): Json | undefined {
  return items.find((item) => item.name === name);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isNamed(value: unknown): value is Json[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((item) => isObject(item) && typeof item.name === "string")
  );
}

/** RFC 7386. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) {
    return patch;
  }
  const result: Json = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) {
      delete result[key];
    } else {
      result[key] = mergePatch(result[key], value);
    }
  }
  return result;
}
