/** A cluster in memory for one database: StatefulSet, kubelets, volumes and nodes, with the operator's real steps. */

import {
  type KubeClient,
  type KubernetesObject,
  type ObjectRef,
  type Resource,
  resources,
} from "@slipway/controller-runtime";
import { annotations, labels } from "@slipway/crds";
import { silentLogger } from "@slipway/process";
import type { Database } from "../../../operator/src/databases/database.ts";
import type {
  ClusterContext,
  ClusterState,
  DatabaseDriver,
  LiveClaim,
  LiveDatabase,
  LivePod,
} from "../../../operator/src/databases/driver.ts";
import { planMembers, unusedSince } from "../../../operator/src/databases/members.ts";
import { releaseMembers } from "../../../operator/src/databases/release.ts";
import { exampleCredentials } from "../databases/examples.ts";
import { FakeClock } from "../processes/fake-clock.ts";

/** Steps (of a second) that a kubelet's silence goes unnoticed. */
const UNNOTICED = 3;
/** Seconds that an unused volume is kept. */
const GRACE = 40;

/** What is on a member's volume: acknowledged writes and others, in order, and whatever its engine keeps beside them. */
export interface Volume {
  claim: LiveClaim;
  log: number[];
  state: Record<string, unknown>;
}

/** A pod, and its process. */
export interface SimulatedPod {
  ordinal: number;
  uid: string;
  template: string;
  /** Members that were reported to it. */
  members: number;
  startedAt: string;
  alive: boolean;
  ready: boolean;
  role?: string;
  deleting: boolean;
  /** Steps since its process began, or since its node fell silent. */
  age: number;
  volume: Volume;
  /** What its engine has in memory. */
  state: Record<string, unknown>;
}

/** How an engine's processes behave. */
export interface Model {
  driver(): DatabaseDriver;
  /** A second passes. */
  step(): void;
  /** A client writes over the Service. @returns whether it was acknowledged */
  write(id: number): boolean;
  /** A command of the operator's in a container that answers. */
  exec(pod: SimulatedPod, container: string, command: readonly string[], stdin?: string): string;
  /** Its process ended in an orderly way. */
  stopped?(pod: SimulatedPod): void;
}

export class Cluster {
  readonly clock = new FakeClock("2026-03-01T00:00:00Z");
  readonly configMaps = new Map<string, Record<string, string>>();
  readonly pods = new Map<number, SimulatedPod>();
  readonly volumes = new Map<number, Volume>();
  /** Nodes that are down; each member has one of its own. */
  readonly down = new Set<number>();
  readonly acknowledged: number[] = [];
  instances: number;
  paused = false;
  plan = 0;
  model!: Model;
  #driver!: DatabaseDriver;
  readonly #base: Database;
  #replicas = 0;
  #template = "";
  #members = 0;
  #status: ClusterContext["status"] = {};
  #made = 0;
  #writes = 0;
  #seen: LiveDatabase;

  constructor(base: Database, model: (cluster: Cluster) => Model) {
    this.#base = base;
    this.instances = base.instances;
    this.#seen = this.live();
    this.model = model(this);
    this.restartOperator();
  }

  /** Pods whose processes run, the first one first. */
  alive(): SimulatedPod[] {
    return [...this.pods.values()].filter(({ alive }) => alive).toSorted((a, b) => a.ordinal - b.ordinal);
  }

  /** The pod that the Service leads to. */
  served(): SimulatedPod | undefined {
    const led = [...this.pods.values()].filter(
      ({ role, ready, deleting }) => role === "primary" && ready && !deleting,
    );
    return led.length === 1 && led[0]?.alive ? led[0] : undefined;
  }

  write(): void {
    this.#writes += 1;
    if (this.model.write(this.#writes)) {
      this.acknowledged.push(this.#writes);
    }
  }

  restartOperator(): void {
    this.#driver = this.model.driver();
  }

  loseNode(ordinal: number): void {
    this.down.add(ordinal);
    const pod = this.pods.get(ordinal);
    if (pod) {
      Object.assign(pod, { alive: false, age: 0 });
    }
  }

  /** As by force: its process has no time to say anything. */
  killPod(ordinal: number): void {
    if (!this.down.has(ordinal)) {
      this.pods.delete(ordinal);
    }
  }

  /** A second passes: the StatefulSet's controller, kubelets, and the engine's processes. */
  step(): void {
    this.#seen = this.live();
    this.clock.jumpWall(1_000);
    for (const [ordinal, volume] of this.volumes) {
      if (volume.claim.metadata?.deletionTimestamp && !this.pods.has(ordinal)) {
        this.volumes.delete(ordinal);
      }
    }
    for (const pod of this.pods.values()) {
      this.#stepPod(pod);
    }
    for (let ordinal = 0; ordinal < this.#replicas; ordinal += 1) {
      if (!this.pods.has(ordinal) && !this.down.has(ordinal)) {
        this.#start(ordinal);
      }
    }
    this.model.step();
  }

  /** One reconcile as `DatabaseKind` does it. @param stale by what the watches showed a second ago */
  async reconcile(stale = false): Promise<void> {
    const starting = !this.paused && this.#replicas === 0;
    const live = stale && !starting ? this.#seen : this.live();
    const planned = planMembers(this.instances, this.paused, live);
    const bootstrapped = this.#status.bootstrappedAt !== undefined;
    const database: Database = {
      ...this.#base,
      ...planned,
      instances: this.instances,
      paused: this.paused,
      bootstrapped,
    };
    this.#replicas = database.replicas;
    this.#members = database.members;
    this.#template = `${this.plan}/${database.members}`;
    if (this.paused) {
      return;
    }
    const context = this.#context();
    const now = stale ? live : this.live();
    await releaseMembers(database, now, this.#driver, {
      ...context,
      volumeGraceMs: GRACE * 1_000,
      observe: () => {},
    });
    // One that fails is retried.
    const { primary, credentialsHash, identity } = await this.#driver
      .reconcile(database, now, context)
      .catch((): ClusterState => ({}));
    const works = primary !== undefined && credentialsHash !== undefined;
    this.#status = {
      ...this.#status,
      identity: identity ?? this.#status.identity,
      bootstrappedAt: this.#status.bootstrappedAt ?? (works ? this.clock.now().toISOString() : undefined),
    };
  }

  /** As the watches show it. */
  live(): LiveDatabase {
    const template = { metadata: { annotations: { [annotations.settingsHash]: this.#template } } };
    return {
      statefulSet: {
        metadata: { name: "shop", namespace: "slipway-org-alpha" },
        spec: { replicas: this.#replicas, template },
      },
      pods: [...this.pods.values()].toSorted((a, b) => a.ordinal - b.ordinal).map(viewOf),
      claims: [...this.volumes.values()].map(({ claim }) => ({ ...claim, metadata: { ...claim.metadata } })),
    };
  }

  #start(ordinal: number): void {
    this.#made += 1;
    let volume = this.volumes.get(ordinal);
    if (volume?.claim.metadata?.deletionTimestamp) {
      return;
    }
    if (!volume) {
      const metadata = {
        name: `data-shop-${ordinal}`,
        namespace: "slipway-org-alpha",
        uid: `claim-${this.#made}`,
      };
      volume = { claim: { metadata, status: { phase: "Bound" } }, log: [], state: {} };
      this.volumes.set(ordinal, volume);
    }
    this.pods.set(ordinal, {
      ordinal,
      uid: `pod-${this.#made}`,
      template: this.#template,
      members: this.#members,
      startedAt: this.clock.now().toISOString(),
      alive: true,
      ready: false,
      deleting: false,
      age: 0,
      volume,
      state: {},
    });
  }

  #stepPod(pod: SimulatedPod): void {
    pod.age += 1;
    if (this.down.has(pod.ordinal)) {
      if (pod.age >= UNNOTICED) {
        pod.ready = false;
      }
      return;
    }
    if (!pod.alive || pod.deleting || pod.ordinal >= this.#replicas) {
      if (pod.alive) {
        this.model.stopped?.(pod);
      }
      this.pods.delete(pod.ordinal);
    }
  }

  #context(): ClusterContext {
    return {
      client: this.#client(),
      clock: this.clock,
      log: silentLogger,
      signal: new AbortController().signal,
      credentials: exampleCredentials,
      authority: "",
      certificate: { serial: "01", signedAt: new Date("2026-01-01T00:00:00Z") },
      status: this.#status,
      event: () => {},
      queryMember: (_pod, question) => question(),
      wake: () => {},
    };
  }

  #client(): KubeClient {
    const podOf = ({ name }: ObjectRef) => this.pods.get(Number(name.split("-").at(-1)));
    const volumeOf = ({ name }: ObjectRef) => this.volumes.get(Number(name.split("-").at(-1)));
    const client = {
      getOrUndefined: async (resource: Resource, ref: ObjectRef) => {
        if (resource === resources.configMaps) {
          const kept = this.configMaps.get(ref.name);
          return (
            kept && { metadata: { name: ref.name, uid: ref.name, resourceVersion: "1", annotations: kept } }
          );
        }
        if (resource === resources.persistentVolumeClaims) {
          return volumeOf(ref)?.claim;
        }
        const pod = podOf(ref);
        return pod && viewOf(pod);
      },
      patch: async (resource: Resource, ref: ObjectRef, patch: KubernetesObject) => {
        if (resource === resources.statefulSets) {
          this.#replicas = (patch as { spec: { replicas: number } }).spec.replicas;
        } else if (resource === resources.persistentVolumeClaims) {
          const { claim } = volumeOf(ref) ?? {};
          if (claim?.metadata) {
            claim.metadata.annotations = merged(claim.metadata.annotations, patch);
          }
        } else if (resource === resources.configMaps) {
          this.configMaps.set(ref.name, merged(this.configMaps.get(ref.name), patch));
        } else {
          const pod = podOf(ref);
          if (pod && pod.uid === patch.metadata?.uid) {
            pod.role = patch.metadata?.labels?.[labels.role];
          }
        }
        return patch;
      },
      apply: async (_: Resource, object: KubernetesObject) => {
        this.configMaps.set(object.metadata?.name ?? "", { ...object.metadata?.annotations });
      },
      delete: async (resource: Resource, ref: ObjectRef, { uid }: { uid?: string }) => {
        if (resource === resources.persistentVolumeClaims) {
          this.#deleteClaim(volumeOf(ref), uid);
        }
        const pod = resource === resources.pods ? podOf(ref) : undefined;
        if (pod?.uid === uid && pod) {
          pod.deleting = true;
        }
      },
      podExec: async (
        ref: ObjectRef,
        options: { container: string; command: readonly string[]; stdin?: string },
      ) => {
        const pod = podOf(ref);
        if (!pod?.alive) {
          throw new Error("no answer");
        }
        const stdout = this.model.exec(pod, options.container, options.command, options.stdin);
        return { exitCode: 0, stdout, stderr: "" };
      },
    };
    return client as unknown as KubeClient;
  }

  #deleteClaim(volume: Volume | undefined, uid: string | undefined): void {
    if (!volume?.claim.metadata || volume.claim.metadata.uid !== uid) {
      return;
    }
    if (unusedSince(volume.claim) === undefined) {
      throw new Error("a volume was deleted that was never marked");
    }
    volume.claim.metadata.deletionTimestamp = this.clock.now().toISOString();
  }
}

function merged(before: Readonly<Record<string, string>> | undefined, { metadata }: KubernetesObject) {
  const all = Object.entries<string | null>({ ...before, ...metadata?.annotations });
  return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== null));
}

function viewOf({ ordinal, uid, role, ready, alive, deleting, template, startedAt }: SimulatedPod): LivePod {
  return {
    metadata: {
      name: `shop-${ordinal}`,
      namespace: "slipway-org-alpha",
      uid,
      labels: role === undefined ? {} : { [labels.role]: role },
      annotations: { [annotations.settingsHash]: template },
      ...(deleting ? { deletionTimestamp: "2026-03-01T00:00:00Z" } : {}),
    },
    status: {
      phase: "Running",
      podIP: "192.0.2.1",
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
      containerStatuses: [
        { name: "database", ready, state: alive || ready ? { running: { startedAt } } : {} },
      ],
    },
  };
}
