import type { DesiredObject } from "../../desired.ts";
import { childMetadata, type Workload } from "./app.ts";

/**
 * The volume of a persistent project. Its pods share it on one node. It is deleted with its project only: a project that
 * stops asking for storage keeps its data until then.
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
