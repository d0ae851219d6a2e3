/** From a Project to what its objects are made from. Pure. */

import {
  type Catalog,
  credentialKeys,
  credentialsHash,
  type DatabaseCredentials,
  type DatabasePlan,
  databaseNames,
  type EngineName,
  isDatabaseType,
  type Project,
} from "@slipway/crds";
import type { ApiserverPeer } from "../organization/clusterAddresses.ts";
import type { Placement } from "../placement.ts";
import type { Accepted } from "../project/accept.ts";
import type { ChildOwner } from "../project/workload/app.ts";
import { toWorkload } from "../project/workload/view.ts";
import { hashJson, parseQuantity } from "../runtime/index.ts";
import { admittedBlocks, type IpBlock } from "./common/access.ts";
import type { ClaimTemplate, LiveDatabase, LiveStatefulSet } from "./engine.ts";
import { planMembers } from "./members.ts";
import { type DatabaseImage, type DatabasePlatform, imageOf, type OutsideType } from "./settings.ts";

/** One database, ready to be turned into objects. Every field is already validated. */
export interface Database extends ChildOwner {
  type: EngineName;
  /** Of the project: another one of the same name is another database. */
  uid: string;
  /** Names of its objects. */
  names: ReturnType<typeof databaseNames>;
  plan: DatabasePlan;
  version: string;
  profile?: "key_value" | "cache" | "queue";
  image: DatabaseImage;
  /** Instances that the project asks for. */
  instances: number;
  /** Pods that there are to be now: none while paused, and more than `instances` until they may be stopped. */
  replicas: number;
  /** Members that the engine counts: those that run or are asked for, and those whose data nobody else is known to have. */
  members: number;
  paused: boolean;
  /** Absent where nothing is kept. */
  storage?: {
    capacityGb: number;
    /** What the StatefulSet's claims are made from: that can never change, so the volumes grow apart from it. */
    template: { size: string; storageClass?: string };
  };
  resources: ReturnType<typeof toWorkload>["resources"];
  /** Limit of one instance, in bytes: what its settings derive from. */
  memoryBytes: number;
  /** Limit of one instance, in cores. */
  cpus: number;
  /** Secrets whose keys become environment variables, later ones winning. */
  envSecrets: readonly string[];
  restartedAt?: string;
  /** Addresses beside the organization's own pods that may connect; none at all without a white list. */
  admitted: readonly IpBlock[];
  /** How it is reached from outside the cluster; absent where it is not. */
  outside?: { type: Exclude<OutsideType, "None"> };
  /** Hash of the credentials that the engine is to take over. */
  credentialsHash: string;
  /** Tells apart the passwords of the platform's own accounts, which pods get when they start. */
  accountsHash: string;
  /** It has taken writes before: it must never be initialised anew. */
  bootstrapped: boolean;
  systemNamespace: string;
  /** Where its pods run. */
  placement?: Placement;
  /** Where its pods find the apiserver. */
  apiserver: readonly ApiserverPeer[];
}

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
    // Nobody outside could ever connect to one that admits nobody.
    outside: type === "None" || admitted.length === 0 ? undefined : { type },
    credentialsHash: credentialsHash(credentials),
    accountsHash: hashJson(OWN_ACCOUNTS.map((key) => credentials[key])).slice(0, 16),
    bootstrapped: status?.database?.bootstrappedAt !== undefined,
    systemNamespace: platform.systemNamespace,
    placement: platform.pods,
    apiserver: platform.apiserver(),
  };
}

/** Instances that a project asks for: Valkey's are its plan's. */
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
