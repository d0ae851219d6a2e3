/** The Secret with the values of a Secret's references. Pure. */

import { createHmac } from "node:crypto";
import { controllerReference } from "@slipway/controller-runtime";
import { labels, MANAGED_BY, type Project } from "@slipway/crds";
import { projectResource } from "../resources.ts";
import { childLabels } from "../workload/app.ts";

const HASH_LENGTH = 12;

/** Bytes of names and values: earlier ones of a project are in the cluster for a while, and count in no quota. */
export const MAX_RESOLVED_BYTES = 262_144;
/** What Linux takes as one string of an environment (MAX_ARG_STRLEN), its `=` and its end included. */
export const MAX_VARIABLE_BYTES = 131_072;

/**
 * An immutable child of the project, named by its content: other values are another Secret, and so another version of the project.
 * @param source name of the Secret whose values were resolved
 * @param key makes the name useless for guessing a password
 */
export function resolvedSecret(
  project: Project,
  organizationId: string,
  { source, values, key }: { source: string; values: Readonly<Record<string, string>>; key: string },
) {
  const { name: id, namespace } = project.metadata;
  const entries = Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1));
  const hash = createHmac("sha256", key)
    .update(JSON.stringify([id, source, entries]))
    .digest("hex");
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: `${id}-refs-${hash.slice(0, HASH_LENGTH)}`,
      namespace,
      labels: childLabels({ type: project.spec.type, id, organizationId }),
      ownerReferences: [controllerReference(project, projectResource)],
    },
    type: "Opaque",
    immutable: true,
    data: Object.fromEntries(entries.map(([name, value]) => [name, Buffer.from(value).toString("base64")])),
  };
}

/** Whether a Secret of a project's has values of references. */
export function isResolvedSecret({
  metadata,
}: {
  metadata?: { name?: string; labels?: Readonly<Record<string, string>> };
}): boolean {
  const own = metadata?.labels ?? {};
  const [, project] = metadata?.name?.match(/^(.+)-refs-[0-9a-f]{12}$/) ?? [];
  return project !== undefined && own[labels.project] === project && own[labels.managedBy] === MANAGED_BY;
}
