import type { ObjectRef, Resource } from "./types.ts";

/** Query parameters; undefined ones are left out. */
export type Query = Record<string, string | number | boolean | undefined>;

/** The URL path of a collection. @throws TypeError when a namespace is given for a cluster-scoped resource. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const root =
    resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  if (!namespace) {
    return `${root}/${resource.plural}`;
  }
  if (!resource.namespaced) {
    throw new TypeError(`${resource.kind} is cluster-scoped; got namespace ${namespace}`);
  }
  return `${root}/namespaces/${encodeURIComponent(namespace)}/${resource.plural}`;
}

/** The URL path of one object or one of its subresources. @throws TypeError when the namespace does not fit. */
export function objectPath(resource: Resource, ref: ObjectRef, subresource?: string): string {
  if (resource.namespaced && !ref.namespace) {
    throw new TypeError(`${resource.kind} ${ref.name} needs a namespace`);
  }
  // `..` would survive the encoding and name another object.
  if (!ref.name || ref.name === "." || ref.name === "..") {
    throw new TypeError(`${resource.kind} needs a name`);
  }
  const path = `${collectionPath(resource, ref.namespace)}/${encodeURIComponent(ref.name)}`;
  return subresource ? `${path}/${subresource}` : path;
}

/** `?a=1&b=2`, or nothing. */
export function queryString(query: Query | undefined): string {
  if (!query) {
    return "";
  }
  const parts = Object.entries(query)
    .filter(
      (entry): entry is [string, string | number | boolean] => entry[1] !== undefined && entry[1] !== "",
    )
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`);
  return parts.length > 0 ? `?${parts.join("&")}` : "";
}
