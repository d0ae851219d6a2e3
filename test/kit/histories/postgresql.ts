/** Patroni's members and their ConfigMaps, in memory: quorum replication, elections and switchovers. */

import { postgresqlDriver } from "../../../operator/src/databases/postgresql/driver.ts";
import type { Cluster, Model, SimulatedPod } from "./cluster.ts";

/** Steps after which the lock of a lost leader expires. */
const EXPIRES = 4;

export class PostgresqlModel implements Model {
  readonly #cluster: Cluster;
  readonly #random: () => number;
  #expired = 0;

  constructor(cluster: Cluster, random: () => number) {
    this.#cluster = cluster;
    this.#random = random;
  }

  driver = postgresqlDriver;

  exec(pod: SimulatedPod, _container: string, command: readonly string[], stdin?: string): string {
    if (stdin !== undefined) {
      return "17.6|7412345678901234567\n";
    }
    return command.some((part) => part.includes("NOT pg_is_in_recovery"))
      ? this.#leads(pod)
        ? "t"
        : "f"
      : "t";
  }

  step(): void {
    const alive = this.#cluster.alive();
    let leader = alive.find((pod) => this.#leads(pod));
    this.#expired = leader ? 0 : this.#expired + 1;
    if (!leader && this.#expired >= EXPIRES) {
      leader = this.#elect(alive);
    }
    if (leader) {
      leader = this.#switchOver(leader, alive);
    }
    const followers = leader ? alive.filter((pod) => pod !== leader) : [];
    for (const follower of followers) {
      follower.volume.log = [...(leader?.volume.log ?? [])];
    }
    for (const follower of followers) {
      follower.volume.state.initialized = true;
    }
    if (leader) {
      this.#synchronize(leader, followers);
    }
    for (const pod of alive) {
      if (leader) {
        pod.role = pod === leader ? "primary" : "replica";
      }
      pod.ready = leader !== undefined;
    }
  }

  /** A write waits for one of the synchronous members, whichever answers first. */
  write(id: number): boolean {
    const leader = this.#cluster.served();
    if (!leader || !this.#leads(leader)) {
      return false;
    }
    leader.volume.log.push(id);
    const standbys = this.#standbys();
    if (standbys.length === 0) {
      return true;
    }
    const alive = this.#cluster.alive().filter(({ ordinal }) => standbys.includes(`shop-${ordinal}`));
    const fastest = alive[Math.floor(this.#random() * alive.length)];
    fastest?.volume.log.splice(0, Number.POSITIVE_INFINITY, ...leader.volume.log);
    return fastest !== undefined;
  }

  #leads(pod: SimulatedPod): boolean {
    return pod.state.leads === true && this.#leader() === `shop-${pod.ordinal}`;
  }

  #leader = () => this.#cluster.configMaps.get("shop-leader")?.leader;

  #standbys(): string[] {
    const listed = this.#cluster.configMaps.get("shop-sync")?.sync_standby ?? "";
    return listed.split(",").filter((name) => name !== "");
  }

  /** A member that has everything, as far as those that answer know. */
  #elect(alive: SimulatedPod[]): SimulatedPod | undefined {
    const { configMaps } = this.#cluster;
    if (!configMaps.has("shop-config")) {
      const first = alive[0];
      if (!first) {
        return undefined;
      }
      configMaps.set("shop-config", { config: "{}" });
      first.volume.state.initialized = true;
      return this.#lead(first);
    }
    const candidates = alive.filter(({ volume }) => volume.state.initialized === true);
    const before = configMaps.get("shop-sync")?.leader;
    const voters = before === undefined ? undefined : [before, ...this.#standbys()];
    const able = candidates.filter(({ ordinal }) => voters?.includes(`shop-${ordinal}`) ?? true);
    // What was acknowledged is on the leader and on one of the others: without the leader all others have to answer.
    const leaderAnswers = able.some(({ ordinal }) => `shop-${ordinal}` === before);
    const complete = voters === undefined || leaderAnswers || able.length === voters.length - 1;
    const best = able.toSorted((a, b) => b.volume.log.length - a.volume.log.length)[0];
    return best && complete ? this.#lead(best) : undefined;
  }

  #lead(pod: SimulatedPod): SimulatedPod {
    for (const other of this.#cluster.pods.values()) {
      other.state.leads = false;
    }
    pod.state.leads = true;
    this.#cluster.configMaps.set("shop-leader", { leader: `shop-${pod.ordinal}` });
    return pod;
  }

  #switchOver(leader: SimulatedPod, alive: SimulatedPod[]): SimulatedPod {
    const { configMaps } = this.#cluster;
    const requested = configMaps.get("shop-failover");
    configMaps.delete("shop-failover");
    const to = alive.find(({ ordinal }) => `shop-${ordinal}` === requested?.member);
    if (
      !to ||
      requested?.leader !== `shop-${leader.ordinal}` ||
      !this.#standbys().includes(requested.member ?? "")
    ) {
      return leader;
    }
    to.volume.log = [...leader.volume.log];
    return this.#lead(to);
  }

  #synchronize(leader: SimulatedPod, followers: SimulatedPod[]): void {
    const { configMaps } = this.#cluster;
    const mode = (JSON.parse(configMaps.get("shop-config")?.config ?? "{}") as { synchronous_mode?: string })
      .synchronous_mode;
    const names = followers.map(({ ordinal }) => `shop-${ordinal}`);
    const standbys = mode === "quorum" ? names : mode === "on" ? names.slice(0, 1) : [];
    if (mode === undefined || mode === "off") {
      configMaps.delete("shop-sync");
    } else {
      configMaps.set("shop-sync", { leader: `shop-${leader.ordinal}`, sync_standby: standbys.join(",") });
    }
  }
}
