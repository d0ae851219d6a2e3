import type { DesiredObject } from "../../desired.ts";
import type { Database } from "../database.ts";
import { metadataOf, podLabels } from "./metadata.ts";

/** Keeps drained nodes from stopping more than one instance at a time; for one instance it would only block the drain. */
export function podDisruptionBudget(database: Database): DesiredObject | undefined {
  if (database.replicas < 2) {
    return undefined;
  }
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: metadataOf(database, database.names.main),
    spec: { maxUnavailable: 1, selector: { matchLabels: podLabels(database) } },
  };
}
