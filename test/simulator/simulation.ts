/** A cluster, a ledger, users and faults, around the operator's own jobrun reconciler: all from one seed. */

import { Apiserver } from "./apiserver.ts";
import { ModelCatalog } from "./catalog.ts";
import { Chaos, type ChaosOptions } from "./chaos.ts";
import { drawBehaviour, drawHabit, type Habit, type ImageFaults } from "./container.ts";
import { ControllerManager, type ControllerManagerOptions } from "./controller-manager.ts";
import { CronJobController } from "./cron-job-controller.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { InvariantChecker, type InvariantOptions } from "./invariant-checker.ts";
import { JobController } from "./job-controller.ts";
import { JobRunProcess } from "./job-run-process.ts";
import { Kubelets } from "./kubelets.ts";
import { type LedgerFaults, ModelLedger } from "./ledger.ts";
import { Nodes } from "./nodes.ts";
import type { StoredPod } from "./objects.ts";
import { ProjectController } from "./project-controller.ts";
import { Chance } from "./random.ts";
import { Replicas, type ReplicasOptions } from "./replicas.ts";
import { Timeline } from "./timeline.ts";
import { Users, type UsersOptions } from "./users.ts";
import type { Violation } from "./violation-log.ts";

/** When every simulation begins: a day before a cycle ends. */
const START = Date.parse("2026-01-31T00:00:00Z");

export interface SimulationOptions {
  seed: number;
  /** Occurrences that are to be decided. */
  occurrences: number;
  nodes: number;
  limitSeconds: number;
  windowSeconds: number;
  startDeadlineSeconds: number;
  maxSkewMs: number;
  manager: ControllerManagerOptions;
  imageFaults: ImageFaults;
  users: UsersOptions;
  chaos: ChaosOptions;
  replicas: ReplicasOptions;
  ledger: LedgerFaults;
  latencyMs: InvariantOptions["latencyMs"];
  /** Violations after which it ends immediately. */
  maxViolations: number;
  /** Called from time to time with the progress. */
  onProgress?: (decided: number) => void;
}

export interface SimulationResult {
  violations: readonly Violation[];
  /** Occurrences by their outcome. */
  decided: Readonly<Record<string, number>>;
  runs: number;
  rows: number;
  /** Rows of the ledger by status. */
  charged: Record<string, number>;
  kills: number;
  freezes: number;
  events: number;
  /** Simulated milliseconds. */
  simulatedMs: number;
}

/** Runs a simulation to its end, and waits until nothing is active. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { seed, limitSeconds, windowSeconds, startDeadlineSeconds, maxSkewMs } = options;
  const stream = (name: string) => new Chance(seed, name);
  const timeline = new Timeline(START);
  const api = new Apiserver(timeline);
  const ledger = new ModelLedger(timeline, stream("ledger"), options.ledger);
  const catalog = new ModelCatalog(timeline);
  const checker = new InvariantChecker(timeline, api, ledger, catalog, {
    limitMs: limitSeconds * 1_000,
    windowMs: windowSeconds * 1_000,
    skewMs: maxSkewMs,
    latencyMs: options.latencyMs,
  });
  const manager = new ControllerManager(timeline, stream("manager"), options.manager);
  const nodes = new Nodes(timeline, api, stream("nodes"), { count: options.nodes, maxSkewMs });
  const habits = new Map<string, Habit>();
  const images = stream("images");
  let chaos: Chaos | undefined;
  const kubelets = new Kubelets(timeline, api, nodes, stream("kubelets"), {
    behaviour: (pod: StoredPod) => {
      const project = pod.metadata.labels?.["slipway.dev/project"] ?? "";
      const habit = habits.get(project) ?? drawHabit(images);
      habits.set(project, habit);
      return drawBehaviour(images, habit, options.imageFaults);
    },
    observer: {
      containerStarted: (record) => {
        checker.containerStarted(record);
        chaos?.started(record);
      },
      containerEnded: (record) => checker.containerEnded(record),
    },
  });
  new CronJobController(timeline, api, manager);
  new JobController(timeline, api, manager, stream("pods"));
  new GarbageCollector(timeline, api, manager);
  const projects = new ProjectController(timeline, api, stream("projects"), { limitSeconds, windowSeconds });
  const users = new Users(timeline, api, stream("users"), projects, options.users, stream("frauds"));
  const parts = {
    timeline,
    api,
    chance: stream("chaos"),
    nodes,
    kubelets,
    manager,
    ledger,
    catalog,
    checker,
  };
  chaos = new Chaos(parts, options.chaos);
  const settings = {
    limitMs: limitSeconds * 1_000,
    windowMs: windowSeconds * 1_000,
    startDeadlineMs: startDeadlineSeconds * 1_000,
  };
  const replicas = new Replicas(timeline, api, stream("replicas"), options.replicas, (process, mayAct) => {
    return new JobRunProcess(process, {
      ledger,
      catalog,
      settings,
      mayAct,
      chance: stream("operator"),
      checker,
    });
  });
  replicas.onEvent = (text) => checker.recordForAll(text);
  replicas.onLeadership = (leads) => checker.leadershipChanged(leads);

  const continues = () => checker.violations.length < options.maxViolations;
  let decided = 0;
  while (continues() && decided < options.occurrences) {
    await timeline.runUntil(timeline.now + 60_000, continues);
    decided = Object.values(checker.decided).reduce((sum, count) => sum + count, 0);
    options.onProgress?.(decided);
  }
  // No more faults and no more requests: what is left has to end.
  chaos.stop();
  users.stop();
  replicas.calm();
  const rest = 2 * options.limitSeconds * 1_000 + 45 * 60_000;
  await timeline.runUntil(timeline.now + rest, continues);
  if (continues()) {
    checker.checkFinalState();
  }
  return {
    violations: checker.violations,
    decided: checker.decided,
    runs: [...checker.runs.values()].filter(({ containers }) => containers.length > 0).length,
    rows: ledger.rows.size,
    charged: countBy([...ledger.rows.values()].map(({ status }) => status)),
    kills: replicas.kills,
    freezes: replicas.freezes,
    events: timeline.events,
    simulatedMs: timeline.now - START,
  };
}

function countBy(items: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const item of items) {
    counts[item] = (counts[item] ?? 0) + 1;
  }
  return counts;
}
