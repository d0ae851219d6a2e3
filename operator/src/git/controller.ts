/** The controller of Git connections: what wakes it, what it may do. */

import {
  ignoreStatusUpdates,
  type Manager,
  type Store,
  tracedIn,
  watchMapped,
  watchObjects,
} from "@slipway/controller-runtime";
import type { GitConnection, Project } from "@slipway/crds";
import type { OpenConnection } from "../builds/sources.ts";
import type { PolicyRule } from "../rbac.ts";
import { gitConnectionResource } from "../resources.ts";
import { usesConnection } from "./hooks.ts";
import { gitConnectionReconciler, turnOfApi } from "./reconciler.ts";

/** Permissions in every namespace; the chart's ClusterRole is generated from them. */
export const rules: PolicyRule[] = [
  {
    apiGroups: ["slipway.dev"],
    resources: ["gitconnections"],
    verbs: ["get", "list", "watch", "patch", "delete"],
  },
  { apiGroups: ["slipway.dev"], resources: ["gitconnections/status"], verbs: ["patch"] },
];

/** In organizations' namespaces alone: the credential that hooks are taken away with. */
export const organizationRules: PolicyRule[] = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }];

/** Between two tries to take hooks away; a server may be gone for long. */
const BACKOFF = { baseMs: 1_000, maxMs: 300_000 };

export function addGitConnectionController(
  manager: Manager,
  { projects, open }: { projects: Store<Project>; open: OpenConnection },
): void {
  const { client, clock } = manager;
  const connections = manager.store<GitConnection>(gitConnectionResource);
  manager.addController({
    name: "gitconnection",
    reconcile: gitConnectionReconciler({ client, clock, connections, projects, open }),
    sources: [
      // Hooks are noted in the status.
      watchObjects(connections),
      watchMapped(
        projects,
        (project) =>
          connections
            .list(project.metadata.namespace)
            .filter((connection) => usesConnection(project, connection))
            .map(({ metadata: { namespace, name } }) => ({ namespace, name })),
        ignoreStatusUpdates,
      ),
    ],
    workers: 2,
    // Of what `/v1` writes it acts on a revocation alone, and tells no generation.
    traced: tracedIn(
      connections,
      (connection) => connection.spec.revokedAt === undefined || turnOfApi(connection, clock.now()) > 0,
    ),
    backoff: BACKOFF,
  });
}
