import type { KubernetesObject, Resource } from "./types.ts";

/** Annotations that every write of an object of that kind carries; null takes one away. Pure at the time of the write. */
export type Annotate = (resource: Resource) => Readonly<Record<string, string | null>> | undefined;

/** The object with the annotations, to be created or applied. Pure. */
export function annotated<T extends KubernetesObject>(object: T, annotations: ReturnType<Annotate>): T {
  const given = Object.entries(annotations ?? {}).filter(([, value]) => value !== null);
  if (given.length === 0) {
    return object;
  }
  const { metadata } = object;
  const merged = { ...metadata?.annotations, ...Object.fromEntries(given) };
  return { ...object, metadata: { ...metadata, annotations: merged } };
}

/** A merge patch that sets the annotations beside what it changes. Pure. */
export function annotatedPatch(patch: unknown, annotations: ReturnType<Annotate>): unknown {
  if (annotations === undefined || typeof patch !== "object" || patch === null) {
    return patch;
  }
  const { metadata } = patch as KubernetesObject;
  return { ...patch, metadata: { ...metadata, annotations: { ...metadata?.annotations, ...annotations } } };
}
