import type { DesiredObject } from "../desired.ts";
import { childMetadata, type Workload } from "./app.ts";
import type { VolumeClaim } from "./growth.ts";

/**
 * The volume of a persistent project. Its pods share it on one node. It is deleted with its project only: a project that
 * stops requesting storage keeps its data until then.
 */
export function persistentVolumeClaim(app: Workload): DesiredObject | undefined {
  if (!app.volume) {
    return undefined;
  }
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: childMetadata(app),
    spec: {
      accessModes: ["ReadWriteOnce"],
      ...(app.volume.storageClass ? { storageClassName: app.volume.storageClass } : {}),
      resources: { requests: { storage: `${app.volume.capacityGb}Gi` } },
    },
  };
}

/**
 * The same objects, with the class and size of a claim that exists already: where the cluster refuses to change them, an
 * apply would fail, and the objects after it would never be applied. Claims grow apart from it.
 */
export function withLiveClaim(
  objects: readonly DesiredObject[],
  live: VolumeClaim | undefined,
): readonly DesiredObject[] {
  const storage = live?.spec?.resources?.requests?.storage;
  if (storage === undefined) {
    return objects;
  }
  const storageClassName = live?.spec?.storageClassName;
  return objects.map((object) =>
    object.kind === "PersistentVolumeClaim"
      ? {
          ...object,
          spec: {
            accessModes: ["ReadWriteOnce"],
            ...(storageClassName === undefined ? {} : { storageClassName }),
            resources: { requests: { storage } },
          },
        }
      : object,
  );
}
