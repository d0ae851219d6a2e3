import { type KubernetesObject, keyOf } from "@slipway/controller-runtime";
import { labels, organizationOfNamespace } from "@slipway/crds";
import type { Target } from "./access-line.ts";

/** Whose requests those of a Service or an Ingress are. */
export interface Owner {
  organization: string;
  project: string;
}

/** A Service, as far as Traefik makes names of it. */
export type ServiceView = KubernetesObject & { spec?: { ports?: { name?: string; port: number }[] } };
/** An Ingress, likewise. */
export type IngressView = KubernetesObject & {
  spec?: { rules?: { host?: string; http?: { paths?: { path?: string }[] } }[] };
};

/** Letters and digits, and one dash for whatever is between them: what Traefik (v3) makes of a name. */
export function normalized(name: string): string {
  return name
    .split(/[^\p{L}\p{N}]+/u)
    .filter((part) => part !== "")
    .join("-");
}

/**
 * Its own name (`namespace/name`), and those of Traefik's services for a Kubernetes Service: an Ingress names one of its ports by
 * name or by number. None of Traefik's names has a slash.
 */
export function serviceNames(service: ServiceView): string[] {
  const { metadata, spec } = service;
  const ports = (spec?.ports ?? []).flatMap(({ name, port }) => [name, String(port)]);
  const names = ports
    .filter((port) => port !== undefined && port !== "")
    .map((port) => normalized(`${metadata?.namespace}-${metadata?.name}-${port}`));
  return [keyOf(service), ...names];
}

/** Its own name, and those of Traefik's routers for an Ingress: one for each path of each host. */
export function routerNames(ingress: IngressView): string[] {
  const { metadata, spec } = ingress;
  const names = (spec?.rules ?? []).flatMap(({ host = "", http }) =>
    (http?.paths ?? []).map(({ path = "" }) =>
      normalized(`${metadata?.namespace}-${metadata?.name}-${host}${path}`),
    ),
  );
  return [keyOf(ingress), ...names];
}

/** The project that an object is a child of; undefined for one that only says so, outside its organization's namespace. */
export function ownerOf({ metadata }: KubernetesObject): Owner | undefined {
  const organization = metadata?.labels?.[labels.organization];
  const project = metadata?.labels?.[labels.project];
  if (!organization || !project) {
    return undefined;
  }
  return organizationOfNamespace(metadata?.namespace ?? "") === organization
    ? { organization, project }
    : undefined;
}

const PROVIDER = "@kubernetes";
/** What Traefik adds to routers that would have one name. */
const HASH = /-[0-9a-f]{20}$/;

/** The name of the service, or those that the router may have been made from; undefined for what is no Ingress's. */
export function namesOf(target: Target): { kind: "service" | "router"; names: string[] } | undefined {
  const { service, router, entryPoint, object } = target;
  if (object) {
    return { kind: object.kind, names: [object.key] };
  }
  if (service !== "") {
    return service.endsWith(PROVIDER)
      ? { kind: "service", names: [service.slice(0, -PROVIDER.length)] }
      : undefined;
  }
  if (!router.endsWith(PROVIDER)) {
    return undefined;
  }
  const name = router.slice(0, -PROVIDER.length);
  // An Ingress on several entry points has a router for each, which is named after it.
  const prefix = `${entryPoint}-`;
  const found = entryPoint !== "" && name.startsWith(prefix) ? [name, name.slice(prefix.length)] : [name];
  return { kind: "router", names: found.flatMap((name) => [name, name.replace(HASH, "")]) };
}

/** How long a name is known after the last object that it was made from is deleted: the log names it a little later. */
export const REMEMBERED_MS = 10 * 60_000;

/** Names and whose they are. Exact: a name that two projects' objects have belongs to neither. */
export class NameTable {
  readonly #names = new Map<string, Map<string, { owner: Owner; goneAt: number }>>();
  readonly #keys = new Map<string, string[]>();

  /** Records the names that were made from the object with this key, in place of those it had. */
  set(key: string, owner: Owner, names: readonly string[], now: number): void {
    const before = this.#keys.get(key) ?? [];
    this.#forget(
      key,
      before.filter((name) => !names.includes(name)),
      now,
    );
    this.#keys.set(key, [...names]);
    for (const name of names) {
      const entries = this.#names.get(name) ?? new Map();
      entries.set(key, { owner, goneAt: Number.POSITIVE_INFINITY });
      this.#names.set(name, entries);
    }
  }

  /** The object is deleted; its names are remembered for a while. */
  remove(key: string, now: number): void {
    this.#forget(key, this.#keys.get(key) ?? [], now);
    this.#keys.delete(key);
    this.#expire(now);
  }

  /** Whose the name is: existing objects have precedence over deleted ones. */
  find(name: string, now: number): Owner | "ambiguous" | undefined {
    const entries = [...(this.#names.get(name)?.values() ?? [])];
    const live = entries.filter(({ goneAt }) => goneAt === Number.POSITIVE_INFINITY);
    const found = live.length > 0 ? live : entries.filter(({ goneAt }) => now - goneAt < REMEMBERED_MS);
    const [first, ...others] = found;
    if (!first) {
      return undefined;
    }
    const isSame = ({ owner }: { owner: Owner }) =>
      owner.project === first.owner.project && owner.organization === first.owner.organization;
    return others.every(isSame) ? first.owner : "ambiguous";
  }

  #forget(key: string, names: readonly string[], now: number): void {
    for (const name of names) {
      const entry = this.#names.get(name)?.get(key);
      if (entry) {
        entry.goneAt = now;
      }
    }
  }

  #expire(now: number): void {
    for (const [name, entries] of this.#names) {
      for (const [key, { goneAt }] of entries) {
        if (now - goneAt >= REMEMBERED_MS) {
          entries.delete(key);
        }
      }
      if (entries.size === 0) {
        this.#names.delete(name);
      }
    }
  }
}
