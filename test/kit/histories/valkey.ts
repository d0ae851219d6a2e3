/**
 * Valkey servers and their Sentinels, in memory: start scripts, elections, switchovers. Replicas that are linked have every
 * write immediately: what asynchronous replication loses is another matter.
 */

import { valkeyDriver } from "../../../operator/src/databases/valkey/driver.ts";
import { DEFAULT_PRIORITY } from "../../../operator/src/databases/valkey/topology.ts";
import type { Cluster, Model, SimulatedPod } from "./cluster.ts";

/** Steps without the primary after which a Sentinel reports it as down: one that has seen it, and one that has just started. */
const DOWN_AFTER = 3;
const PATIENT = 15;

interface Sentinel {
  epoch: number;
  primary: number;
}

interface Server {
  role?: "primary" | "replica";
  follows?: number;
  linked?: boolean;
  priority?: number;
  /** Steps that its Sentinel has not seen the primary; whether it ever did. */
  silent?: number;
  seen?: boolean;
}

export class ValkeyModel implements Model {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  driver = valkeyDriver;

  exec(pod: SimulatedPod, container: string, _command: readonly string[], stdin = ""): string {
    if (container === "sentinel") {
      return this.#coordinate() ? "OK\n" : "NOGOODREPLICA\n";
    }
    const server = serverOf(pod);
    if (server.role === undefined) {
      throw new Error("connection refused");
    }
    const answers = stdin.split("\n").flatMap((line) => {
      if (line === "" || line.startsWith("INFO")) {
        return [];
      }
      const [, priority] = /^CONFIG SET replica-priority ([0-9]+)/.exec(line) ?? [];
      const [, follows] = /^REPLICAOF shop-node-([0-9]+)/.exec(line) ?? [];
      if (priority !== undefined) {
        server.priority = Number(priority);
      }
      if (follows !== undefined) {
        Object.assign(server, { role: "replica", follows: Number(follows), linked: false });
      }
      return ["OK"];
    });
    const followers = this.#followersOf(pod).map((_, index) => `slave${index}:ip=x,state=online`);
    const role =
      server.role === "primary"
        ? ["role:master", ...followers]
        : [
            "role:slave",
            `master_host:shop-node-${server.follows}.slipway-org-alpha.svc`,
            `master_link_status:${server.linked ? "up" : "down"}`,
            `slave_priority:${server.priority}`,
          ];
    return [...answers, "valkey_version:9.1.2", ...role, ""].join("\n");
  }

  step(): void {
    const alive = this.#cluster.alive();
    for (const pod of alive) {
      if (serverOf(pod).role === undefined) {
        this.#begin(pod);
      }
    }
    for (const pod of alive) {
      this.#replicate(pod);
    }
    this.#watch(alive.filter(({ members }) => members > 1));
    for (const pod of alive) {
      const { role, linked } = serverOf(pod);
      pod.ready = role === "primary" || (role === "replica" && linked === true);
      if (pod.ready) {
        pod.volume.state.synchronized = true;
      }
    }
  }

  /** One of several takes writes while a replica follows it. */
  write(id: number): boolean {
    const primary = this.#cluster.served();
    if (!primary || serverOf(primary).role !== "primary") {
      return false;
    }
    const followers = this.#followersOf(primary);
    if (primary.members > 1 && followers.length === 0) {
      return false;
    }
    for (const { volume } of [primary, ...followers]) {
      volume.log.push(id);
    }
    return true;
  }

  /** As `start.sh` does. */
  #begin(pod: SimulatedPod): void {
    const server = serverOf(pod);
    const { volume } = pod;
    const known = sentinelOf(pod);
    if (pod.members === 1) {
      Object.assign(server, { role: "primary" });
      volume.state.data = true;
      return;
    }
    const others = this.#cluster.alive().filter((other) => other !== pod && other.members > 1);
    const newest = others.map(sentinelOf).toSorted((a, b) => b.epoch - a.epoch)[0];
    if (!newest) {
      return;
    }
    if (newest.primary !== pod.ordinal) {
      // One that has never been synchronized may not be promoted before the operator has seen it linked.
      const priority = volume.state.synchronized === true ? DEFAULT_PRIORITY : 0;
      Object.assign(server, { role: "replica", follows: newest.primary, linked: false, priority });
      volume.state.data = true;
    } else if (volume.state.data === true || this.#nobodyHasData(pod)) {
      Object.assign(server, { role: "primary" });
      volume.state.data = true;
      if (newest.epoch > known.epoch) {
        Object.assign(known, newest);
      }
    }
  }

  #nobodyHasData(pod: SimulatedPod): boolean {
    const others = this.#cluster.alive().filter((other) => other !== pod);
    const empty = others.filter(
      (other) => serverOf(other).role !== undefined && other.volume.log.length === 0,
    );
    return empty.length === pod.members - 1;
  }

  #replicate(pod: SimulatedPod): void {
    const server = serverOf(pod);
    if (server.role !== "replica") {
      return;
    }
    const primary = this.#cluster.pods.get(server.follows ?? -1);
    server.linked = primary?.alive === true && serverOf(primary).role === "primary";
    if (server.linked && primary) {
      pod.volume.log = [...primary.volume.log];
    }
  }

  /** Sentinels agree on the newest epoch that any of them has, and fail over a primary that most of them report as down. */
  #watch(pods: SimulatedPod[]): void {
    const newest = pods.map(sentinelOf).toSorted((a, b) => b.epoch - a.epoch)[0];
    if (!newest) {
      return;
    }
    const { epoch, primary } = newest;
    const leader = this.#cluster.pods.get(primary);
    const there = leader?.alive === true && serverOf(leader).role === "primary";
    for (const pod of pods) {
      Object.assign(sentinelOf(pod), { epoch, primary });
      const server = serverOf(pod);
      server.seen = server.seen === true || there;
      server.silent = there ? 0 : (server.silent ?? 0) + 1;
      // A primary of before that comes back is made a replica.
      if (server.role === "primary" && pod.ordinal !== primary && there) {
        Object.assign(server, { role: "replica", follows: primary, linked: false });
      }
    }
    const unreachable = pods.filter((pod) => {
      const { silent = 0, seen } = serverOf(pod);
      return silent >= (seen ? DOWN_AFTER : PATIENT);
    });
    const quorum = Math.floor(Math.max(...pods.map(({ members }) => members)) / 2) + 1;
    if (unreachable.length >= quorum) {
      this.#promote(pods, epoch);
    }
  }

  /** @returns whether one of them has taken over */
  #promote(pods: SimulatedPod[], epoch: number): boolean {
    const able = pods.filter((pod) => serverOf(pod).role === "replica" && serverOf(pod).priority !== 0);
    const best = able.toSorted((a, b) => b.volume.log.length - a.volume.log.length)[0];
    if (!best) {
      return false;
    }
    for (const pod of pods) {
      Object.assign(sentinelOf(pod), { epoch: epoch + 1, primary: best.ordinal });
      Object.assign(serverOf(pod), { silent: 0 });
      if (pod !== best && serverOf(pod).role !== undefined) {
        Object.assign(serverOf(pod), { role: "replica", follows: best.ordinal, linked: false });
      }
    }
    Object.assign(serverOf(best), { role: "primary", follows: undefined });
    return true;
  }

  /** A switchover waits until the other one has everything. */
  #coordinate(): boolean {
    const pods = this.#cluster.alive().filter(({ members }) => members > 1);
    const primary = pods.find((pod) => serverOf(pod).role === "primary");
    const able = pods.filter((pod) => {
      const { role, linked, priority } = serverOf(pod);
      return role === "replica" && linked === true && priority !== 0;
    });
    return (
      primary !== undefined && able.length > 0 && this.#promote([primary, ...able], sentinelOf(primary).epoch)
    );
  }

  #followersOf(primary: SimulatedPod): SimulatedPod[] {
    return this.#cluster.alive().filter((pod) => {
      const { role, follows, linked } = serverOf(pod);
      return role === "replica" && follows === primary.ordinal && linked === true;
    });
  }
}

const serverOf = ({ state }: SimulatedPod): Server => state;

/** What a Sentinel has kept on the volume; the first one is the primary where nothing was kept. */
function sentinelOf({ volume: { state } }: SimulatedPod): Sentinel {
  state.sentinel ??= { epoch: 0, primary: 0 } satisfies Sentinel;
  return state.sentinel as Sentinel;
}
