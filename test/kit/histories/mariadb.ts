/** Members of a Galera group with their launchers, in memory: majorities, copies, orders of the operator's. */

import { mariadbDriver } from "../../../operator/src/databases/mariadb/driver.ts";
import type { Cluster, Model, SimulatedPod } from "./cluster.ts";

const UUID = "71951be9-e5f5-11f1-ab66-3a367bef804d";

interface Member {
  /** A server runs; its launcher waits otherwise. */
  running?: boolean;
  /** It is in the part of the group that has a majority. */
  primary?: boolean;
  events?: boolean;
}

export class MariadbModel implements Model {
  readonly #cluster: Cluster;
  /** Who was in the group when it last had a majority, by uid of their pods. */
  #view: string[] = [];

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  driver = mariadbDriver;

  exec(pod: SimulatedPod, _container: string, command: readonly string[], stdin?: string): string {
    const member = memberOf(pod);
    const [, script = "", order = ""] = command;
    if (stdin !== undefined) {
      return `11.8.6-MariaDB from Debian\t${UUID}\n`;
    }
    if (script.endsWith("ask.sh")) {
      return this.#status(pod);
    }
    const { state } = pod.volume;
    if (order === "initialize" && state.data === undefined) {
      state.data = "unborn";
    }
    if (order === "bootstrap" && !member.running && state.data !== undefined) {
      this.#form([pod]);
    }
    if (order === "revive" && member.running) {
      this.#form([pod]);
    }
    if (order === "restart") {
      Object.assign(member, { running: false, primary: false });
    }
    if (order === "lead") {
      member.events = true;
    }
    if (order === "rest") {
      member.events = false;
    }
    return "";
  }

  step(): void {
    const running = this.#cluster.alive().filter((pod) => memberOf(pod).running);
    const together = running.filter(({ uid }) => this.#view.includes(uid));
    if (together.length * 2 > this.#view.length) {
      this.#form(together);
      this.#join(running);
    } else {
      for (const pod of running) {
        Object.assign(memberOf(pod), { primary: false, events: false });
      }
    }
    for (const pod of this.#cluster.alive()) {
      pod.ready = memberOf(pod).primary === true;
    }
  }

  /** A write is on every member of the group before it is acknowledged. */
  write(id: number): boolean {
    const primary = this.#cluster.served();
    if (!primary || !memberOf(primary).primary) {
      return false;
    }
    const group = this.#cluster.alive().filter((pod) => memberOf(pod).primary);
    // Some of them may be deleted and nobody has noticed.
    if (group.length * 2 <= this.#view.length) {
      return false;
    }
    for (const { volume } of group) {
      volume.log.push(id);
    }
    return true;
  }

  /** One that leaves in order is no longer counted. */
  stopped({ uid }: SimulatedPod): void {
    if (this.#view.length > 1) {
      this.#view = this.#view.filter((one) => one !== uid);
    }
  }

  #form(group: SimulatedPod[]): void {
    this.#view = group.map(({ uid }) => uid);
    for (const pod of group) {
      Object.assign(memberOf(pod), { running: true, primary: true });
      pod.volume.state.data = "whole";
    }
  }

  /** One more comes in, with a copy of what the others have. */
  #join(running: SimulatedPod[]): void {
    const others = [...running, ...this.#cluster.alive()].find((pod) => !this.#view.includes(pod.uid));
    const donor = running.find(({ uid }) => this.#view.includes(uid));
    if (!others || !donor) {
      return;
    }
    others.volume.log = [...donor.volume.log];
    this.#form([...running.filter(({ uid }) => this.#view.includes(uid)), others]);
  }

  #status({ uid, volume }: SimulatedPod & { volume: { log: number[] } }): string {
    const pod = this.#cluster.alive().find((one) => one.uid === uid);
    const { running, primary, events } = pod ? memberOf(pod) : {};
    const data = (volume.state.data as string | undefined) ?? "none";
    if (!running) {
      const position =
        data === "whole" ? [`uuid=${UUID}`, `seqno=${volume.log.length}`] : ["uuid=", "seqno=-1"];
      return [`run=${uid}`, "phase=waiting", `data=${data}`, ...position, "safe=0", ""].join("\n");
    }
    return [
      `run=${uid}`,
      "phase=joining",
      `wsrep_cluster_size\t${this.#view.length}`,
      `wsrep_cluster_status\t${primary ? "Primary" : "non-Primary"}`,
      `wsrep_last_committed\t${volume.log.length}`,
      `wsrep_local_state\t${primary ? 4 : 0}`,
      `wsrep_local_state_uuid\t${UUID}`,
      `wsrep_ready\t${primary ? "ON" : "OFF"}`,
      `event_scheduler\t${events ? "ON" : "OFF"}`,
      "version\t11.8.6-MariaDB",
    ].join("\n");
  }
}

const memberOf = ({ state }: SimulatedPod): Member => state;
