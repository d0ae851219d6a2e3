/** The operator's processes: one leads, another follows the cluster and takes over. They are killed, frozen and started again. */

import type { RunCluster } from "../../operator/src/jobs/runs/cluster.ts";
import type { Apiserver } from "./apiserver.ts";
import { type CallFaults, NO_CALL_FAULTS } from "./connection.ts";
import type { JobRunProcess } from "./job-run-process.ts";
import { ModelProcess } from "./process.ts";
import type { Chance } from "./random.ts";
import type { Timeline } from "./timeline.ts";

export interface ReplicasOptions {
  /** Processes that there usually are: 1 or 2. */
  count: number;
  faults: CallFaults;
  /** Most milliseconds that a wall clock is off. */
  maxSkewMs: number;
  /** Milliseconds between two of a kind on the average; Infinity for never. */
  freezesMs: number;
  outagesMs: number;
  clockJumpsMs: number;
  watchCutsMs: number;
  /** Milliseconds between a change and its arrival in the leader's memory. */
  watchDelayMs: readonly [number, number];
  /** Replaces the connection to the cluster: a faulty variant for a test. */
  wrap?: (cluster: RunCluster) => RunCluster;
}

/** A Lease that is not renewed is taken over after so long. */
const LEASE_MS = 15_000;

interface Replica {
  readonly process: ModelProcess;
  readonly operator: JobRunProcess;
  leads: boolean;
  /** Milliseconds by which its memory is behind at the least. */
  lagMs: number;
}

export class Replicas {
  readonly #timeline: Timeline;
  readonly #api: Apiserver;
  readonly #chance: Chance;
  readonly #options: ReplicasOptions;
  readonly #make: (process: ModelProcess, mayAct: () => boolean) => JobRunProcess;
  #replicas: Replica[] = [];
  #calm = false;
  #electionPlanned = false;
  /** Processes that were killed. */
  kills = 0;
  freezes = 0;
  /** Called for what happens to them. */
  onEvent: (text: string) => void = () => {};
  /** Called when one begins to lead, and when the one that led stops or is frozen. */
  onLeadership: (leads: boolean) => void = () => {};

  constructor(
    timeline: Timeline,
    api: Apiserver,
    chance: Chance,
    options: ReplicasOptions,
    make: (process: ModelProcess, mayAct: () => boolean) => JobRunProcess,
  ) {
    this.#timeline = timeline;
    this.#api = api;
    this.#chance = chance;
    this.#options = options;
    this.#make = make;
    api.onChange((change) => {
      for (const { process } of this.#replicas) {
        process.observe(change);
      }
    });
    for (let index = 0; index < options.count; index += 1) {
      this.#start();
    }
    this.#every(options.freezesMs, () => this.#freeze());
    this.#every(options.outagesMs, () => this.#outage());
    this.#every(options.clockJumpsMs, () => this.#jump());
    this.#every(options.watchCutsMs, () => this.#cutWatch());
  }

  /** From now on nothing happens to them any more. */
  calm(): void {
    this.#calm = true;
  }

  #start(): void {
    const { maxSkewMs, faults, watchDelayMs, wrap } = this.#options;
    const chance = this.#chance;
    let replica: Replica | undefined;
    const process: ModelProcess = new ModelProcess({
      timeline: this.#timeline,
      api: this.#api,
      chance,
      faults: this.#calm ? NO_CALL_FAULTS : faults,
      watchDelay: () => (replica?.lagMs ?? 0) + chance.between(...watchDelayMs),
      clockOffset: Math.round(chance.between(-maxSkewMs, maxSkewMs)),
      onKilled: () => this.#died(process),
      ...(wrap ? { wrap } : {}),
    });
    const operator = this.#make(process, () => replica?.leads === true && !process.frozen);
    replica = { process, operator, leads: false, lagMs: chance.between(0, 4_000) };
    this.#replicas.push(replica);
    this.#timeline.after(chance.between(50, 3_000), () => {
      if (!process.alive) {
        return;
      }
      process.sync();
      this.#planElection(chance.between(0, 2_000));
    });
  }

  #died(process: ModelProcess): void {
    this.kills += 1;
    const replica = this.#replicas.find((candidate) => candidate.process === process);
    this.#replicas = this.#replicas.filter((candidate) => candidate.process !== process);
    this.onEvent("an operator is killed");
    if (replica?.leads) {
      this.#notifyLeadership();
      this.#planElection(this.#takeOverMs());
    }
    this.#timeline.after(this.#chance.between(2_000, 25_000), () => {
      if (this.#replicas.length < this.#options.count) {
        this.#start();
      }
    });
  }

  /** The Lease is released at times; otherwise it has to expire. */
  #takeOverMs(): number {
    return this.#chance.happens(0.4)
      ? this.#chance.between(0, 2_000)
      : LEASE_MS + this.#chance.between(0, 4_000);
  }

  #planElection(ms: number): void {
    if (this.#electionPlanned) {
      return;
    }
    this.#electionPlanned = true;
    this.#timeline.after(ms, () => {
      this.#electionPlanned = false;
      this.#elect();
    });
  }

  #elect(): void {
    if (this.#replicas.some(({ leads, process }) => leads && !process.frozen)) {
      return;
    }
    const next = this.#replicas.find(
      ({ leads, process, operator }) => !leads && !process.frozen && operator.synced,
    );
    if (!next) {
      return;
    }
    next.leads = true;
    // Its memory may be behind for a while yet.
    this.#timeline.after(this.#chance.between(0, 5_000), () => {
      next.lagMs = 0;
    });
    this.onEvent("an operator leads");
    this.#notifyLeadership();
    next.process.wake(() => next.operator.lead());
  }

  /** Stops the leader for a while. If its Lease expires meanwhile another leads, and this one finds out late. */
  #freeze(): void {
    const frozen = this.#replicas.find(({ leads }) => leads);
    if (!frozen) {
      return;
    }
    const ms = this.#chance.between(500, 60_000);
    this.freezes += 1;
    frozen.process.freeze();
    this.#notifyLeadership();
    // The one that takes over fills its memory while the other is stopped.
    if (this.#replicas.length < 2) {
      this.#start();
    }
    this.onEvent(`the leader is frozen for ${Math.round(ms / 1_000)} s`);
    const lost = ms > LEASE_MS;
    if (lost) {
      this.#timeline.after(LEASE_MS + this.#chance.between(0, 2_000), () => this.#planElection(0));
    }
    this.#timeline.after(ms, () => {
      if (!frozen.process.alive) {
        return;
      }
      if (lost) {
        frozen.leads = false;
      }
      frozen.process.thaw();
      if (!lost) {
        this.#notifyLeadership();
      }
      this.onEvent("the frozen operator continues");
      // It ends when it notices that its Lease is lost; its reconciles continue until then.
      if (lost) {
        this.#timeline.after(this.#chance.between(0, 1_500), () => frozen.process.kill());
      }
    });
  }

  #notifyLeadership(): void {
    this.onLeadership(this.#replicas.some(({ leads, process }) => leads && !process.frozen));
  }

  /** Nobody leads for a while. */
  #outage(): void {
    const until = this.#timeline.now + this.#chance.between(20_000, 600_000);
    const keepDown = () => {
      for (const { process } of [...this.#replicas]) {
        process.kill();
      }
      if (this.#timeline.now < until && !this.#calm) {
        this.#timeline.after(2_000, keepDown);
      }
    };
    this.onEvent("no operator runs for a while");
    keepDown();
  }

  #jump(): void {
    const { maxSkewMs } = this.#options;
    for (const { process } of this.#replicas) {
      process.clockOffset = Math.round(this.#chance.between(-maxSkewMs, maxSkewMs));
    }
  }

  /** A watch delivers nothing for a while, and then a list does. */
  #cutWatch(): void {
    const replica = this.#replicas[0];
    if (!replica) {
      return;
    }
    const before = replica.lagMs;
    replica.lagMs = this.#chance.between(1_000, 20_000);
    this.onEvent(`an operator's watches deliver nothing for ${Math.round(replica.lagMs / 1_000)} s`);
    this.#timeline.after(replica.lagMs, () => {
      replica.lagMs = before;
      if (replica.process.alive) {
        replica.process.sync();
      }
    });
  }

  #every(mean: number, run: () => void): void {
    if (!Number.isFinite(mean)) {
      return;
    }
    this.#timeline.after(this.#chance.exponential(mean), () => {
      if (this.#calm) {
        return;
      }
      run();
      this.#every(mean, run);
    });
  }
}
