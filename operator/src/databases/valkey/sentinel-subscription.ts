/** Subscribes to the Sentinels, to learn immediately of another primary: no change of a pod needs to come with it. */

import type { Socket } from "node:net";
import { credentialKeys } from "@slipway/crds";
import { isReady, ordinalOf, processOf } from "../common/pods.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, LivePod } from "../driver.ts";
import { nodeAddress, SENTINEL_PORT } from "./names.ts";
import { type Address, command, opened, openSocket } from "./resp.ts";

/** The channel on which each Sentinel publishes a new primary. */
const CHANNEL = "+switch-master";

/** Timeout until a Sentinel confirms the subscription, in milliseconds. */
const SUBSCRIBE_TIMEOUT_MS = 10_000;

/** Replies to AUTH and SUBSCRIBE; an error in place of either ends the connection. */
const CONFIRMED = /^\+OK\r\n\*3\r\n\$9\r\nsubscribe\r\n/;

/** A connection to a Sentinel. */
interface Connection {
  socket: Socket;
  /** The Sentinel has confirmed the subscription. */
  subscribed: boolean;
}

type Context = Pick<ClusterContext, "authority" | "credentials" | "wake">;

export class SentinelSubscription {
  /** By the process of the pod's server. */
  readonly #connections = new Map<string, Connection>();

  /**
   * Subscribes to the Sentinels of the replicas: that of a primary that hangs may hang, too. A connection that has ended is
   * opened again only by the next call.
   * @returns whether all of them have confirmed
   */
  subscribe(database: Database, primary: LivePod, pods: readonly LivePod[], context: Context): boolean {
    const others = pods.filter((pod) => pod !== primary && isReady(pod) && pod.status?.podIP !== undefined);
    const wanted = new Map(others.map((pod) => [processOf(pod), pod]));
    for (const [process, { socket }] of this.#connections) {
      if (!wanted.has(process)) {
        this.#connections.delete(process);
        socket.destroy();
      }
    }
    for (const [process, pod] of wanted) {
      if (!this.#connections.has(process)) {
        const address: Address = {
          host: pod.status?.podIP ?? "",
          port: SENTINEL_PORT,
          serverName: nodeAddress(database, ordinalOf(pod)),
          ca: context.authority,
        };
        this.#open(process, address, context);
      }
    }
    return wanted.size > 0 && [...this.#connections.values()].every(({ subscribed }) => subscribed);
  }

  close(): void {
    for (const { socket } of this.#connections.values()) {
      socket.destroy();
    }
    this.#connections.clear();
  }

  #open(process: string, address: Address, { credentials, wake }: Context): void {
    const socket = openSocket(address);
    const connection: Connection = { socket, subscribed: false };
    this.#connections.set(process, connection);
    const timer = setTimeout(() => socket.destroy(), SUBSCRIBE_TIMEOUT_MS);
    socket.unref();
    socket.setKeepAlive(true, 60_000);
    socket.once(opened(address), () =>
      socket.write(
        command("AUTH", credentials[credentialKeys.replication] ?? "") + command("SUBSCRIBE", CHANNEL),
      ),
    );
    let reply = "";
    socket.on("data", (data: Buffer) => {
      if (connection.subscribed) {
        wake();
        return;
      }
      reply += data.toString("latin1");
      connection.subscribed = CONFIRMED.test(reply);
      if (connection.subscribed) {
        clearTimeout(timer);
      } else if (/(^|\n)-/.test(reply)) {
        socket.destroy();
      }
    });
    socket.once("close", () => {
      clearTimeout(timer);
      if (this.#connections.get(process) === connection) {
        this.#connections.delete(process);
        // A connection that was never confirmed is retried by the next reconcile.
        if (connection.subscribed) {
          wake();
        }
      }
    });
  }
}
