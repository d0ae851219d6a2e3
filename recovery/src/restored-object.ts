/** An object of a backup as it is created again. Pure. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { GROUP } from "@slipway/crds";

/** Uids of a backup's objects, and those of the objects that were created in their place. */
export type Uids = ReadonlyMap<string, string>;

type Json = { readonly [name: string]: unknown };
type ProjectLike = KubernetesObject & { spec: Json; status?: Json };

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** A text in which each uid of a backup is the one of the object in its place. */
export function withUids(text: string, uids: Uids): string {
  return text.replace(UUID, (uid) => uids.get(uid) ?? uid);
}

/**
 * @param backups name of the newest backup of each database that has one, by `<namespace>/<project>`: the database begins
 *   with it; another one is empty
 * @returns what is created, without a uid; its `status`, if any, is written afterwards
 */
export function restoredObject(
  saved: KubernetesObject,
  uids: Uids,
  backups: ReadonlyMap<string, string>,
): KubernetesObject {
  const ownerReferences = saved.metadata?.ownerReferences?.filter((owner) => uids.has(owner.uid));
  const owned = { ...saved, metadata: { ...saved.metadata, ownerReferences } };
  const object = JSON.parse(withUids(JSON.stringify(owned), uids)) as KubernetesObject;
  const { uid: _uid, ownerReferences: owners, ...metadata } = object.metadata ?? {};
  const restored = {
    ...object,
    metadata: { ...metadata, ...(owners?.length ? { ownerReferences: owners } : {}) },
  };
  if (object.kind === "Namespace") {
    return namespace(restored);
  }
  if (object.kind === "Service") {
    return service(restored);
  }
  if (!object.apiVersion?.startsWith(`${GROUP}/`)) {
    return restored;
  }
  const { spec, status } = restored as { spec?: unknown; status?: unknown };
  const current = {
    ...restored,
    // What is reserved for a generation is so for the first one; none was observed yet.
    ...(spec === undefined ? {} : { spec: withGenerations(spec, 1) }),
    ...(status === undefined ? {} : { status: withGenerations(status, 0) }),
  } as KubernetesObject;
  return object.kind === "Project" ? project(current as ProjectLike, backups) : current;
}

/** With its organization alone: the operator adds policies and quotas, and notes then that it has. */
function namespace({ apiVersion, kind, metadata }: KubernetesObject): KubernetesObject {
  const own = Object.entries(metadata?.labels ?? {}).filter(([name]) => !name.startsWith("kubernetes.io/"));
  return { apiVersion, kind, metadata: { name: metadata?.name, labels: Object.fromEntries(own) } };
}

/** With the ports of nodes that it had; its addresses are the new cluster's, and the operator applies all else to it. */
function service({ apiVersion, kind, metadata, ...object }: KubernetesObject): KubernetesObject {
  const { type, selector, ports } = (object as { spec?: Json }).spec ?? {};
  const { annotations: _, ...rest } = metadata ?? {};
  return { apiVersion, kind, metadata: rest, spec: { type, selector, ports } } as KubernetesObject;
}

/** A new object begins with its first generation: those of before say nothing of it. */
function withGenerations(value: unknown, generation: number): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => withGenerations(item, generation));
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  const fields = Object.entries(value).map(([name, field]) => [
    name,
    /^(observedG|g)eneration$/.test(name) && typeof field === "number"
      ? generation
      : withGenerations(field, generation),
  ]);
  return Object.fromEntries(fields);
}

/** What was observed of its pods is gone with them; its history stays. */
function project(object: ProjectLike, backups: ReadonlyMap<string, string>): KubernetesObject {
  const {
    conditions: _1,
    phase: _2,
    currentInstances: _3,
    desiredInstances: _4,
    readyInstances: _5,
    ...history
  } = object.status ?? {};
  const backup = backups.get(`${object.metadata?.namespace}/${object.metadata?.name}`);
  const before = isJson(object.spec.database) ? object.spec.database : {};
  const database = {
    ...without(before, ["restoreFrom"]),
    ...(backup === undefined ? {} : { restoreFrom: { backup } }),
  };
  const spec = {
    ...without(object.spec, ["database"]),
    ...(Object.keys(database).length === 0 ? {} : { database }),
  };
  const status = {
    ...history,
    ...(isJson(history.database) ? { database: databaseStatus(history.database) } : {}),
    ...(isJson(history.job) ? { job: without(history.job, ["activeRun"]) } : {}),
  };
  return { ...object, spec, status } as KubernetesObject;
}

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null;

const without = (value: Json, names: readonly string[]): Json =>
  Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));

/** Where clients reach it, and as whom; not that it has been set up before. */
const ADDRESS = [
  "name",
  "username",
  "host",
  "port",
  "inside",
  "credentialsSecretRef",
  "engine",
  "driver",
  "version",
];
const databaseStatus = (status: Json): Json =>
  Object.fromEntries(Object.entries(status).filter(([name]) => ADDRESS.includes(name)));
