/** What differs between database engines. All else (Secrets, volumes, status, deletion) is the same for all. */

import type { KubeClient, KubernetesObject } from "@slipway/controller-runtime";
import type { DatabaseCredentials, DatabasePlan, DatabaseStatus, EngineName, Project } from "@slipway/crds";
import type { Clock, Logger } from "@slipway/process";
import type { PodView } from "../applications/pod-problem.ts";
import type { DesiredObject } from "../desired.ts";
import type { Finding } from "../projects/status.ts";
import type { Database } from "./database.ts";
import type { DatabaseImage } from "./settings.ts";
import type { Certificate } from "./tls/secret.ts";

export interface DatabaseDriver {
  readonly name: EngineName;
  /** Port that clients connect to; a container's port of this number is named `database`. */
  readonly port: number;
  /** Why a project that its plan allows is not supported; undefined when it is. Pure. */
  refuse?(project: Project, plan: DatabasePlan, image: DatabaseImage): Finding | undefined;
  /** Every object of a database, in the order in which they are applied. Pure; golden-tested. */
  desired(database: Database): DesiredObject[];
  /** Names of Services, beside those that every engine has, by which its certificate is to be known. Pure. */
  services?(database: Database): string[];
  /**
   * Whether a ready primary among the first `instances` answers now, and has every acknowledged write: only then the other
   * members may be stopped, and their volumes deleted later. Queries the servers themselves.
   * @throws what the reconcile is retried for
   */
  isCaughtUp(database: Database, live: LiveDatabase, context: ClusterContext): Promise<boolean>;
  /**
   * Work that only this engine knows, after its objects are applied: accounts, bootstrap, passwords, roles, rolling
   * order. Called often and concurrently for several projects; everything can be retried. Not called for a paused project.
   * @throws what the reconcile is retried for
   */
  reconcile(database: Database, live: LiveDatabase, context: ClusterContext): Promise<ClusterState>;
  /** Whether the previous password can be accepted for a while after a renewal; it can unless this says otherwise. Pure. */
  canKeepPassword?(status: DatabaseStatus): boolean;
  /** The project is deleted: what is kept about it in memory may be dropped. */
  forget?(uid: string): void;
  /** Its plans change in the background, and may fail to. Without it a plan is in force once it is requested. */
  readonly changesPlansInBackground?: true;
}

/** What a reconcile of a cluster has observed. */
export interface ClusterState {
  /** Pod that accepts writes; undefined while none is known to. */
  primary?: string;
  /** What keeps the database from taking writes, or from what was requested; undefined when nothing is missing. */
  missing?: Finding;
  /** It is changing though it serves: a rolling update, a switchover, a replica that is being created. */
  underWay?: Finding;
  /** As the server itself reports it. */
  runningVersion?: string;
  /** Hash of the credentials that the engine has taken over by now; see `Database.credentialsHash`. */
  credentialsHash?: string;
  /** Identity that the engine gave its data. */
  identity?: string;
  /** Which process was set up with what, and which have read which certificate: the next leader repeats none of it. */
  setUpHash?: string;
  certificatesHash?: string;
  /** User that references get, where it is another one than the project's. */
  referenceUsername?: string;
  /** The password before the last renewal is accepted as well, until then. */
  previousPassword?: { until: string };
  /** Milliseconds until the next reconcile, whatever happens. */
  requeueAfterMs?: number;
}

/** A database as the watches show it. */
export interface LiveDatabase {
  statefulSet?: LiveStatefulSet;
  /** Pods of the StatefulSet, by ordinal; those that are being deleted too. */
  pods: readonly LivePod[];
  claims: readonly LiveClaim[];
  outside?: LiveService;
}

/** The parts of a StatefulSet that are read here. */
export interface LiveStatefulSet extends KubernetesObject {
  spec?: {
    replicas?: number;
    template?: {
      metadata?: { annotations?: Readonly<Record<string, string>> };
      spec?: { containers?: readonly { name: string; image?: string }[] };
    };
    volumeClaimTemplates?: readonly ClaimTemplate[];
  };
  status?: { observedGeneration?: number; replicas?: number; readyReplicas?: number };
}

export interface ClaimTemplate {
  spec?: { storageClassName?: string; resources?: { requests?: { storage?: string } } };
}

/** A pod as the store keeps it: of its spec, the node and the database's image alone. */
export type LivePod = KubernetesObject &
  PodView & {
    metadata: {
      name?: string;
      namespace?: string;
      uid?: string;
      labels?: Readonly<Record<string, string>>;
    };
  };

export interface LiveClaim extends KubernetesObject {
  spec?: { resources?: { requests?: { storage?: string } } };
  status?: {
    phase?: string;
    capacity?: { storage?: string };
    conditions?: readonly { type: string; status: string }[];
  };
}

export interface LiveService extends KubernetesObject {
  spec?: { ports?: readonly { name?: string; port: number; nodePort?: number }[] };
  status?: { loadBalancer?: { ingress?: readonly { ip?: string; hostname?: string }[] } };
}

/** The client of a database's objects: commands are run only in members that may answer. */
export type ClusterClient = Pick<KubeClient, "apply" | "delete" | "getOrUndefined" | "patch" | "podExec">;

/** What a reconcile of a cluster works with. */
export interface ClusterContext {
  client: ClusterClient;
  /**
   * Queries a member over the network, under the limits of `client`'s commands.
   * @throws WaitingError without having queried it, where it would not answer or too many queries already wait for an answer
   */
  queryMember<T>(pod: LivePod, query: () => Promise<T>): Promise<T>;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
  /**
   * Content of the credentials Secret, decoded and whole, with `previous-password` where that is to be accepted beside the current one.
   * Never logged.
   */
  credentials: DatabaseCredentials;
  /** PEM of the authority that signs the databases' certificates. */
  authority: string;
  /** The certificate in the TLS Secret: what identifies it, and when it was signed. */
  certificate: Certificate;
  /** The status before this reconcile. */
  status: DatabaseStatus;
  /** Data loss that a person has accepted, as in the project's annotation. */
  acceptDataLoss?: string;
  /** Records an event about the project. */
  event(type: "Normal" | "Warning", reason: string, note: string): void;
  /** Triggers another reconcile soon, also after this one has ended: an event about the cluster arrived. */
  wake(): void;
}
