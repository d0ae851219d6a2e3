/** A database as its objects are derived from it. */

import type { DatabasePlan, databaseNames, EngineName } from "@slipway/crds";
import type { ApiserverPeer } from "../organizations/cluster-addresses.ts";
import type { ChildOwner, Placement } from "../workload/app.ts";
import type { toWorkload } from "../workload/view.ts";
import type { DatabaseImage, OutsideType } from "./settings.ts";

/** `ipBlock` of a NetworkPolicy's peer: a range without the ranges in it that are excepted. */
export interface IpBlock {
  cidr: string;
  except?: string[];
}

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
  /** Version of what the template of its pods is made from; the first one unless given. */
  templateVersion?: number;
  /** Instances that the project requests. */
  instances: number;
  /** Pods that the StatefulSet has now: none while paused, and more than `instances` until they may be stopped. */
  replicas: number;
  /** Members that the engine counts: those that run or are requested, and those whose data no other is known to have. */
  members: number;
  paused: boolean;
  /** Absent where nothing is kept. */
  storage?: {
    capacityGb: number;
    /** Template of the StatefulSet's claims: it is immutable, so the volumes grow apart from it. */
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
  /** Hash of the passwords of the platform's own accounts, which pods get when they start. */
  accountsHash: string;
  /** It has taken writes before: it must never be initialized again. */
  bootstrapped: boolean;
  systemNamespace: string;
  /** Where its pods run. */
  placement?: Placement;
  /** Where its pods find the apiserver. */
  apiserver: readonly ApiserverPeer[];
}
