/** What every database engine does in its own way. All else (Secrets, volumes, status, deletion) is the same for all. */

import type { KubeClient, KubernetesObject } from "@slipway/controller-runtime";
import type { DatabaseCredentials, DatabasePlan, DatabaseStatus, EngineName, Project } from "@slipway/crds";
import type { Clock, Logger } from "@slipway/process";
import type { PodView } from "../applications/rollout.ts";
import type { DesiredObject } from "../desired.ts";
import type { Finding } from "../projects/status.ts";
import type { Database } from "./database.ts";
import type { decide, lateInMs, planToBuild } from "./plan-change-state.ts";
import type { DatabaseImage } from "./settings.ts";
import type { Certificate } from "./tls/secret.ts";

export interface Engine {
  readonly name: EngineName;
  /** Port that clients connect to; a container's port of this number is named `database`. */
  readonly port: number;
  /** Why a project that its plan allows cannot be carried out all the same; undefined when it can. Pure. */
  refuse?(project: Project, plan: DatabasePlan, image: DatabaseImage): Finding | undefined;
  /** Every object of a database, in the order in which they are applied. Pure; golden-tested. */
  desired(database: Database): DesiredObject[];
  /** Names of Services, beside those that every engine has, by which its certificate is to be known. Pure. */
  services?(database: Database): string[];
  /**
   * Whether a ready primary among the first `instances` answers now, and has every acknowledged write: only then the other
   * members may be stopped, and their volumes deleted later. Asks the servers themselves.
   * @throws what the reconcile is retried for
   */
  hasEverything(database: Database, live: LiveDatabase, context: TendContext): Promise<boolean>;
  /**
   * Work that only this engine knows, after its objects are applied: accounts, bootstrap, passwords, roles, rolling
   * order. Told often and by several projects at once; everything can be retried. Not called for a paused project.
   * @throws what the reconcile is retried for
   */
  tend(database: Database, live: LiveDatabase, context: TendContext): Promise<Tended>;
  /** The project is gone: what is kept about it in memory may go. */
  forget?(uid: string): void;
  /** Of an engine whose plans change in the background, and may fail to. Without it a plan is in force once it is asked for. */
  readonly planChange?: PlanChanges;
}

/** How a plan changes in the background. Pure functions. */
export interface PlanChanges {
  planToBuild: typeof planToBuild;
  decide: typeof decide;
  lateInMs: typeof lateInMs;
}

/** What tending a database has found. */
export interface Tended {
  /** Pod that takes writes; undefined while none does, as far as anybody knows. */
  primary?: string;
  /** What keeps the database from taking writes, or from being what was asked for; undefined when it is all well. */
  missing?: Finding;
  /** It is on its way to another state, though it serves: a rolling change, a switchover, a replica that is being made. */
  underWay?: Finding;
  /** What the server itself says it is. */
  runningVersion?: string;
  /** Hash of the credentials that the engine has taken over by now; see `Database.credentialsHash`. */
  credentialsHash?: string;
  /** Identity that the engine gave its data. */
  identity?: string;
  /** Which process was set up with what, and which have read which certificate: the next leader does none of it again. */
  setUpHash?: string;
  certificatesHash?: string;
  /** Milliseconds until it is to be tended again, whatever happens. */
  againInMs?: number;
}

/** A database as the watches told it. */
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
    template?: { metadata?: { annotations?: Readonly<Record<string, string>> } };
    volumeClaimTemplates?: readonly ClaimTemplate[];
  };
  status?: { observedGeneration?: number; replicas?: number; readyReplicas?: number };
}

export interface ClaimTemplate {
  spec?: { storageClassName?: string; resources?: { requests?: { storage?: string } } };
}

/** A pod as the store keeps it: of its spec, the node alone. */
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

/** What is done in the cluster for a database: commands are run only in members that may answer. */
export type TendClient = Pick<KubeClient, "apply" | "delete" | "getOrUndefined" | "patch" | "podExec">;

/** What tending works with. */
export interface TendContext {
  client: TendClient;
  /**
   * Asks a member by the network, as `client` runs commands in it.
   * @throws WaitingError without having asked, where nobody would answer or too many already wait for an answer
   */
  askMember<T>(pod: LivePod, question: () => Promise<T>): Promise<T>;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
  /** Content of the credentials Secret, decoded and whole. Never logged. */
  credentials: DatabaseCredentials;
  /** PEM of the authority that signs the databases' certificates. */
  authority: string;
  /** The certificate in the TLS Secret: what tells one from another, and when it was signed. */
  certificate: Certificate;
  /** What the status said before. */
  status: DatabaseStatus;
  /** What somebody has accepted to lose, as the project's annotation says. */
  acceptDataLoss?: string;
  /** Records an event about the project. */
  event(type: "Normal" | "Warning", reason: string, note: string): void;
  /** Has the database tended again soon, also once tending is over: something was heard of it. */
  wake(): void;
}
