import { once } from "node:events";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { afterEach, beforeAll, expect, test } from "vitest";
import {
  databaseOf,
  exampleCredentials,
  exampleDatabase,
  podOf,
} from "../../../../test/kit/databases/examples.ts";
import type { LivePod } from "../driver.ts";
import { certify, makeAuthority } from "../tls/certificates.ts";
import { nodeAddress, SENTINEL_PORT } from "./names.ts";
import { SentinelSubscription } from "./sentinel-subscription.ts";

/** Sentinels as the protocol shows them, each with an address of loopback, drawn by lot. */

const project = exampleDatabase({
  type: "valkey",
  plan: "db-premium_plus",
  version: "9.1.1",
  profile: "key_value",
  instances: undefined,
});
const database = databaseOf({ project });
const network = `127.${10 + Math.floor(Math.random() * 240)}.${Math.floor(Math.random() * 250)}`;
const LISTENS = "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";
const MESSAGE = "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$3\r\nall\r\n";

let authority: Awaited<ReturnType<typeof makeAuthority>>;
let certificate: Awaited<ReturnType<typeof certify>>;
beforeAll(async () => {
  authority = await makeAuthority(new Date());
  certificate = await certify(
    authority,
    [0, 1, 2].map((ordinal) => nodeAddress(database, ordinal)),
    new Date(),
  );
});

let subscription = new SentinelSubscription();
const servers: Server[] = [];
const sockets = new Map<number, TLSSocket>();
afterEach(async () => {
  subscription.close();
  subscription = new SentinelSubscription();
  for (const socket of sockets.values()) {
    socket.destroy();
  }
  sockets.clear();
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

/** Starts the Sentinel of a pod, which accepts one password. */
async function sentinel(
  ordinal: number,
  password = exampleCredentials["replication-password"],
): Promise<void> {
  const options = { cert: certificate.certificate, key: certificate.key };
  const server = createServer(options, (socket) => {
    socket.on("error", () => undefined);
    sockets.set(ordinal, socket);
    socket.on("data", (data) => {
      const known = data.toString().includes(`\r\n${password}\r\n`);
      socket.write(known ? `+OK\r\n${LISTENS}` : "-WRONGPASS\r\n-NOAUTH\r\n");
    });
  });
  servers.push(server.listen(SENTINEL_PORT, `${network}.${ordinal + 1}`));
  await once(server, "listening");
}

function pods(): [LivePod, LivePod, LivePod] {
  const at = (ordinal: number): LivePod => {
    const pod = podOf(ordinal);
    return { ...pod, status: { ...pod.status, podIP: `${network}.${ordinal + 1}` } };
  };
  return [at(0), at(1), at(2)];
}

let woken = 0;
function listen(members = pods()): boolean {
  const context = {
    authority: authority.certificate,
    credentials: exampleCredentials,
    wake: () => {
      woken += 1;
    },
  };
  return subscription.subscribe(database, members[0], members, context);
}

test("the replicas' Sentinels are subscribed to, and whatever they publish triggers a reconcile", async () => {
  woken = 0;
  for (const ordinal of [0, 1, 2]) {
    await sentinel(ordinal);
  }
  expect(listen()).toBe(false);
  await expect.poll(() => listen()).toBe(true);
  expect([...sockets.keys()].toSorted()).toEqual([1, 2]);
  expect(woken).toBe(0);
  sockets.get(2)?.write(MESSAGE);
  await expect.poll(() => woken).toBe(1);
  sockets.get(1)?.destroy();
  await expect.poll(() => woken).toBe(2);
  expect(listen()).toBe(false);
  await expect.poll(() => listen()).toBe(true);
});

test("one that is not ready is not waited for", async () => {
  await sentinel(1);
  const members = pods();
  members[2] = { ...members[2], status: { ...members[2].status, conditions: [] } };
  await expect.poll(() => listen(members)).toBe(true);
});

test("a Sentinel that rejects the subscription triggers no reconcile", async () => {
  woken = 0;
  await sentinel(1, "another password");
  await sentinel(2);
  listen();
  await expect.poll(() => sockets.get(1)?.destroyed).toBe(true);
  expect(listen()).toBe(false);
  expect(woken).toBe(0);
});
