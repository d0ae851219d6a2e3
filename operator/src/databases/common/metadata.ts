/** Names, labels and selectors of a database's objects. Pure. */

import { labels } from "@slipway/crds";
import { childLabels } from "../../workload/app.ts";
import type { Database } from "../database.ts";

/** Roles of pods: the value of their label. */
export const roles = { primary: "primary", replica: "replica" } as const;
export type Role = (typeof roles)[keyof typeof roles];

/** Metadata of one of a database's objects. */
export function metadataOf(database: Database, name: string) {
  return { name, namespace: database.namespace, labels: childLabels(database) };
}

/** Distinguishes the instances of an engine from its other pods, where it has any. */
export const COMPONENT = "slipway.dev/component";

/** What selects the pods of a database. It never changes: a StatefulSet's selector is immutable. */
export function podLabels({ id, type }: Pick<Database, "id" | "type">, role?: Role): Record<string, string> {
  return {
    [labels.project]: id,
    ...(type === "clickhouse" ? { [COMPONENT]: "server" } : {}),
    ...(role ? { [labels.role]: role } : {}),
  };
}
