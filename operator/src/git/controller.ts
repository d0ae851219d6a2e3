/** The controller of Git connections: its watches and permissions. */

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
import { apiGraceMs, gitConnectionReconciler } from "./reconciler.ts";

/** Permissions in every namespace; the chart's ClusterRole is generated from them. */
export const rules: PolicyRule[] = [
  {
    apiGroups: ["slipway.dev"],
    resources: ["gitconnections"],
    verbs: ["get", "list", "watch", "patch", "delete"],
  },
  { apiGroups: ["slipway.dev"], resources: ["gitconnections/status"], verbs: ["patch"] },
];

/** In organizations' namespaces alone: the credential for removing hooks. */
export const organizationRules: PolicyRule[] = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }];

/** Between two attempts to remove hooks; a server may be unavailable for long. */
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
      // Hooks are recorded in the status.
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
    // Of changes by `/v1` it only acts on a revocation, and records no generation.
    traced: tracedIn(
      connections,
      (connection) => connection.spec.revokedAt === undefined || apiGraceMs(connection, clock.now()) > 0,
    ),
    backoff: BACKOFF,
  });
}
