/** One simulation in a thread of its own. */

import { parentPort, workerData } from "node:worker_threads";
import { calm, stormy } from "./profiles.ts";
import { type SimulationResult, simulate } from "./simulation.ts";

/** The task of a thread. All of its history derives from the seed and these. */
export interface Shard {
  seed: number;
  occurrences: number;
  projects: number;
  calm: boolean;
  maxViolations: number;
}

/** What a thread reports: its progress, and in the end the result. */
export type ShardMessage = { decided: number } | { result: SimulationResult };

/** Runs a shard in this thread. */
export function runShard(
  { seed, occurrences, projects, calm: isCalm, maxViolations }: Shard,
  onProgress: (decided: number) => void,
): Promise<SimulationResult> {
  const profile = isCalm ? calm : stormy;
  return simulate({ ...profile(seed, occurrences, projects), maxViolations, onProgress });
}

const port = parentPort;
if (port) {
  const report = (message: ShardMessage) => port.postMessage(message);
  report({ result: await runShard(workerData as Shard, (decided) => report({ decided })) });
}
