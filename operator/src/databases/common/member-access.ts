/** Limits commands in members: none on a node that is not ready, and few concurrently in those that did not answer before. */

import type { KubeClient, Store } from "@slipway/controller-runtime";
import { type Clock, ConcurrencyLimiter } from "@slipway/process";
import type { Node } from "../../metrics/nodes.ts";
import { WaitingError } from "../../reconcile-errors.ts";
import type { ClusterClient, LiveDatabase, LivePod } from "../driver.ts";
import { processOf } from "./pods.ts";

/** A command that failed after this many milliseconds was not answered. */
const SILENCE_MS = 3_000;

/** Commands under way in members that did not answer the last one: of all organizations, and of one. */
const SILENT_CONCURRENCY = { total: 4, perKey: 2 };

/** What is known of a member's silence is forgotten after so many milliseconds: its pod may be deleted. */
const FORGOTTEN_MS = 600_000;

export class MemberAccess {
  readonly #nodes: Pick<Store<Node>, "get">;
  readonly #clock: Pick<Clock, "monotonic">;
  /** When each process did not answer, in milliseconds. */
  readonly #silent = new Map<string, number>();
  /** Commands under way in silent members, by namespace. */
  readonly #trials = new ConcurrencyLimiter(SILENT_CONCURRENCY);

  constructor(nodes: Pick<Store<Node>, "get">, clock: Pick<Clock, "monotonic">) {
    this.#nodes = nodes;
    this.#clock = clock;
  }

  /** A client whose commands in the database's pods are run as `run` does. */
  clientFor(client: KubeClient, { pods }: Pick<LiveDatabase, "pods">): ClusterClient {
    return {
      apply: client.apply.bind(client),
      delete: client.delete.bind(client),
      getOrUndefined: client.getOrUndefined.bind(client),
      patch: client.patch.bind(client),
      podExec: (ref, options) => {
        const pod = pods.find(({ metadata }) => metadata.name === ref.name);
        const command = () => client.podExec(ref, options);
        return pod ? this.run(pod, command) : command();
      },
    };
  }

  /**
   * Runs a command in a member.
   * @throws WaitingError without having run it, where it would not answer or too many commands already wait for an answer
   */
  async run<T>(pod: LivePod, command: () => Promise<T>): Promise<T> {
    const node = this.#nodes.get(undefined, pod.spec?.nodeName ?? "");
    if (node && !node.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True")) {
      throw unanswered("Its node is not ready.");
    }
    const process = processOf(pod);
    if (!this.#silent.has(process)) {
      return this.#observe(process, command);
    }
    const release = this.#trials.tryAcquire(pod.metadata.namespace ?? "");
    if (!release) {
      throw unanswered("It did not answer, and will be asked again.");
    }
    try {
      return await this.#observe(process, command);
    } finally {
      release();
    }
  }

  async #observe<T>(process: string, command: () => Promise<T>): Promise<T> {
    const from = this.#clock.monotonic();
    try {
      const result = await command();
      this.#silent.delete(process);
      return result;
    } catch (error) {
      const now = this.#clock.monotonic();
      for (const [one, at] of this.#silent) {
        if (now - at > FORGOTTEN_MS) {
          this.#silent.delete(one);
        }
      }
      if (now - from >= SILENCE_MS) {
        this.#silent.set(process, now);
      } else {
        this.#silent.delete(process);
      }
      throw error;
    }
  }
}

function unanswered(why: string): WaitingError {
  const message = `A member cannot be asked. ${why}`;
  return new WaitingError("PrimaryMissing", message, { condition: "DatabaseReady", requeueAfterMs: 10_000 });
}
