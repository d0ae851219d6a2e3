/** Connects to an instance of a project, which is woken first where it sleeps. Nothing of a request is sent before. */

import { connect, type Socket } from "node:net";
import { type Clock, sleep } from "@slipway/process";
import type { Address, SleepingProject } from "./projects.ts";

/** Longest time that a request waits for an instance. */
export const HOLD_MS = 60_000;
/** Longest time of one attempt: the network policy of a new instance may not be in force yet, and connections hang. */
const CONNECT_MS = 1_000;
const RETRY_MS = 100;
/**
 * How long a request for a project that is falling asleep waits until the operator has stopped that: an instance that takes it might be stopped
 * meanwhile. After that the operator is away, and an instance is used all the same.
 */
const ENTERING_MS = 15_000;

/** No instance answers for a project: it did not start in time, or is deleted. */
export class NoInstanceError extends Error {}

export interface Instances {
  current: (project: SleepingProject) => SleepingProject | undefined;
  addresses: (project: SleepingProject) => readonly Address[];
  /** Resolves when something of the project has changed, or the signal aborts. */
  changed: (project: SleepingProject, signal: AbortSignal) => Promise<void>;
  wake: (project: SleepingProject) => void;
}

/**
 * Waits until an instance takes a connection. What ends the wait does not end the connection.
 * @param signal ends the wait when the client has gone
 * @throws NoInstanceError when none does in time, or the signal aborts
 */
export async function connectInstance(
  project: SleepingProject,
  instances: Instances,
  { clock, signal, holdMs = HOLD_MS }: { clock: Clock; signal: AbortSignal; holdMs?: number },
): Promise<Socket> {
  const ending = AbortSignal.any([signal, AbortSignal.timeout(holdMs)]);
  const begunAt = clock.monotonic();
  for (let turn = 0; !ending.aborted; turn += 1) {
    const now = instances.current(project);
    if (now === undefined) {
      throw new NoInstanceError("the project is deleted");
    }
    // In every sleep that it enters meanwhile: what enters one has a request now.
    instances.wake(now);
    const isUndecided = now.isEntering && clock.monotonic() - begunAt < ENTERING_MS;
    const addresses = isUndecided ? [] : instances.addresses(now);
    const address = addresses[turn % Math.max(1, addresses.length)];
    const socket = address && (await open(address, ending));
    if (socket) {
      return socket;
    }
    await (address === undefined
      ? waitForChange(now, instances, ending)
      : sleep(clock, RETRY_MS, ending).catch(() => {}));
  }
  throw new NoInstanceError("no instance answers in time");
}

/** The change may have come before it was waited for: it is checked again soon in any case. */
async function waitForChange(project: SleepingProject, instances: Instances, signal: AbortSignal) {
  const soon = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]);
  await instances.changed(project, soon);
}

/**
 * Undefined when it cannot be connected to in time. A signal that is given to `connect` would destroy the socket also once it is connected.
 */
function open({ host, port }: Address, signal: AbortSignal): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const settle = (found: Socket | undefined) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abandon);
      resolve(found);
    };
    const abandon = () => {
      socket.destroy();
      settle(undefined);
    };
    const timer = setTimeout(abandon, CONNECT_MS);
    signal.addEventListener("abort", abandon);
    socket.once("connect", () => settle(socket));
    socket.on("error", () => settle(undefined));
    if (signal.aborted) {
      abandon();
    }
  });
}
