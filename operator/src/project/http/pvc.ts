import type { DesiredObject } from "../../desired.ts";
import { childMetadata, type HttpApp } from "./app.ts";

/**
 * The volume of a persistent project. Instances share it on one node. It is deleted with its project only: a project that
 * stops asking for storage keeps its data until then.
 */
export function persistentVolumeClaim(app: HttpApp): DesiredObject | undefined {
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
