/** Derives a Database from a Project. Pure. */

import { hashJson, parseQuantity } from "@slipway/controller-runtime";
import {
  type Catalog,
  credentialKeys,
  credentialsHash,
  type DatabaseCredentials,
  type DatabasePlan,
  databaseNames,
  isDatabaseType,
  type Project,
} from "@slipway/crds";
import type { Accepted } from "../projects/accept.ts";
import { toWorkload } from "../workload/view.ts";
import { admittedBlocks } from "./common/network-policy.ts";
import type { Database } from "./database.ts";
import type { ClaimTemplate, LiveDatabase, LiveStatefulSet } from "./driver.ts";
import { planMembers } from "./members.ts";
import { type DatabasePlatform, imageOf } from "./settings.ts";

export interface DatabaseSource {
  catalog: Catalog;
  platform: DatabasePlatform;
  credentials: DatabaseCredentials;
  /** As it is now; nothing is without it. */
  live?: Pick<LiveDatabase, "statefulSet" | "pods" | "claims">;
}

const OWN_ACCOUNTS = [credentialKeys.superuser, credentialKeys.replication, credentialKeys.monitor] as const;

/**
 * @throws Error when the project was never accepted
 */
export function toDatabase(
  project: Project,
  accepted: Accepted<DatabasePlan>,
  { catalog, platform, credentials, live = { pods: [], claims: [] } }: DatabaseSource,
): Database {
  const { spec, status } = project;
  if (!isDatabaseType(spec.type) || spec.version === undefined) {
    throw new Error("not a database");
  }
  const image = imageOf(platform.images(), spec.type, spec.version);
  if (!image) {
    throw new Error("a database without an image");
  }
  const { plan } = accepted;
  const { id, namespace, organizationId, resources, envSecrets, restartedAt, volume } = toWorkload(
    project,
    accepted,
    catalog,
  );
  const instances = instancesOf(project, plan);
  const admitted = admittedBlocks(spec.networkAccess);
  const { type } = platform.outside;
  return {
    type: spec.type,
    uid: project.metadata.uid ?? "",
    id,
    namespace,
    organizationId,
    names: databaseNames(id),
    plan,
    version: spec.version,
    profile: spec.profile,
    image,
    templateVersion: platform.templateVersion,
    instances,
    ...planMembers(instances, spec.paused === true, live),
    paused: spec.paused === true,
    storage: volume && {
      capacityGb: volume.capacityGb,
      template: claimTemplate(live.statefulSet) ?? {
        size: `${volume.capacityGb}Gi`,
        storageClass: volume.storageClass,
      },
    },
    resources,
    memoryBytes: whole(resources.limits.memory),
    cpus: Number(parseQuantity(resources.limits.cpu) ?? 0n) / 1e9,
    envSecrets,
    restartedAt,
    admitted,
    // No client could connect to an address that admits none.
    outside: type === "None" || admitted.length === 0 ? undefined : { type },
    credentialsHash: credentialsHash(credentials),
    accountsHash: hashJson(OWN_ACCOUNTS.map((key) => credentials[key])).slice(0, 16),
    bootstrapped: status?.database?.bootstrappedAt !== undefined,
    systemNamespace: platform.systemNamespace,
    placement: platform.pods,
    apiserver: platform.apiserver(),
  };
}

/** Instances that a project requests: Valkey's are its plan's. */
export function instancesOf({ spec }: Project, plan: DatabasePlan): number {
  const offer = isDatabaseType(spec.type) ? plan.engines[spec.type] : undefined;
  return spec.instances ?? offer?.instances.default ?? 1;
}

function claimTemplate(live: LiveStatefulSet | undefined) {
  const template: ClaimTemplate | undefined = live?.spec?.volumeClaimTemplates?.[0];
  const size = template?.spec?.resources?.requests?.storage;
  return size === undefined ? undefined : { size, storageClass: template?.spec?.storageClassName };
}

function whole(quantity: string): number {
  return Number((parseQuantity(quantity) ?? 0n) / 1_000_000_000n);
}
