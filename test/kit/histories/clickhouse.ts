/** Several ClickHouse servers that agree by Keepers which survive, in memory. */

import { clickhouseDriver } from "../../../operator/src/databases/clickhouse/driver.ts";
import type { Cluster, Model, SimulatedPod } from "./cluster.ts";

export class ClickHouseModel implements Model {
  readonly #cluster: Cluster;
  /** What Keeper has: every insert that was acknowledged. */
  readonly #inserted: number[] = [];

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  driver = () =>
    clickhouseDriver(async ({ name }, statements) => {
      const pod = this.#cluster.pods.get(Number(/-([0-9]+)\./.exec(name)?.[1]));
      if (!pod?.alive) {
        throw new Error("no answer");
      }
      return statements.map((statement) => this.#answer(pod, statement));
    });

  exec(): string {
    return "";
  }

  step(): void {
    const alive = this.#cluster.alive();
    for (const pod of alive) {
      const elsewhere = new Set(alive.flatMap(({ volume }) => volume.log));
      pod.volume.log = this.#inserted.filter((id) => elsewhere.has(id));
      pod.ready = true;
    }
  }

  write(id: number): boolean {
    const server = this.#cluster.served();
    if (!server) {
      return false;
    }
    const other = this.#cluster.alive().find((pod) => pod !== server);
    const quorum = server.members > 2;
    if (quorum && !other) {
      return false;
    }
    this.#inserted.push(id);
    server.volume.log.push(id);
    if (quorum) {
      other?.volume.log.push(id);
    }
    return true;
  }

  #answer({ volume }: SimulatedPod, statement: string): string {
    if (statement.includes("inserts_in_queue")) {
      return volume.log.length === this.#inserted.length ? "0" : "1";
    }
    if (statement.includes("is_readonly")) {
      return "0";
    }
    return statement.includes("version()") ? "26.8.6.5" : "";
  }
}
