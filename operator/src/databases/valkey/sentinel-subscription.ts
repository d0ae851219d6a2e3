/** Hears from the Sentinels at once when another instance has become the primary, which no pod need tell of. */

import type { Socket } from "node:net";
import { credentialKeys } from "@slipway/crds";
import { isReady, ordinalOf, processOf } from "../common/pods.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, LivePod } from "../driver.ts";
import { nodeAddress, SENTINEL_PORT } from "./names.ts";
import { type Address, command, opened, openSocket } from "./resp.ts";

/** The channel on which each Sentinel says so, once it knows. */
const CHANNEL = "+switch-master";

/** How long a Sentinel may take to let the operator listen, in milliseconds. */
const PATIENCE_MS = 10_000;

/** Answers to the password and to the wish to listen; an error in place of either ends it. */
const LISTENS = /^\+OK\r\n\*3\r\n\$9\r\nsubscribe\r\n/;

/** A connection over which a Sentinel tells. */
interface Line {
  socket: Socket;
  /** The Sentinel has said that it will. */
  listens: boolean;
}

type Context = Pick<ClusterContext, "authority" | "credentials" | "wake">;

export class SentinelSubscription {
  /** By the process of the pod's server. */
  readonly #lines = new Map<string, Line>();

  /**
   * Listens to the Sentinels of the replicas: that of a primary that hangs may hang, too. What ends is not taken up again
   * before the next call.
   * @returns whether all of them would tell
   */
  listen(database: Database, primary: LivePod, pods: readonly LivePod[], context: Context): boolean {
    const others = pods.filter((pod) => pod !== primary && isReady(pod) && pod.status?.podIP !== undefined);
    const wanted = new Map(others.map((pod) => [processOf(pod), pod]));
    for (const [process, { socket }] of this.#lines) {
      if (!wanted.has(process)) {
        this.#lines.delete(process);
        socket.destroy();
      }
    }
    for (const [process, pod] of wanted) {
      if (!this.#lines.has(process)) {
        const address: Address = {
          host: pod.status?.podIP ?? "",
          port: SENTINEL_PORT,
          serverName: nodeAddress(database, ordinalOf(pod)),
          ca: context.authority,
        };
        this.#open(process, address, context);
      }
    }
    return wanted.size > 0 && [...this.#lines.values()].every(({ listens }) => listens);
  }

  end(): void {
    for (const { socket } of this.#lines.values()) {
      socket.destroy();
    }
    this.#lines.clear();
  }

  #open(process: string, address: Address, { credentials, wake }: Context): void {
    const socket = openSocket(address);
    const line: Line = { socket, listens: false };
    this.#lines.set(process, line);
    const given = setTimeout(() => socket.destroy(), PATIENCE_MS);
    socket.unref();
    socket.setKeepAlive(true, 60_000);
    socket.once(opened(address), () =>
      socket.write(
        command("AUTH", credentials[credentialKeys.replication] ?? "") + command("SUBSCRIBE", CHANNEL),
      ),
    );
    let answer = "";
    socket.on("data", (data: Buffer) => {
      if (line.listens) {
        wake();
        return;
      }
      answer += data.toString("latin1");
      line.listens = LISTENS.test(answer);
      if (line.listens) {
        clearTimeout(given);
      } else if (/(^|\n)-/.test(answer)) {
        socket.destroy();
      }
    });
    socket.once("close", () => {
      clearTimeout(given);
      if (this.#lines.get(process) === line) {
        this.#lines.delete(process);
        // One that could not be listened to is tried again by and by.
        if (line.listens) {
          wake();
        }
      }
    });
  }
}
