import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { databaseOf, exampleDatabase } from "../../../../test/kit/databases/examples.ts";
import { files } from "./config.ts";
import { nodeAddress, paths, SENTINEL_PORT, VALKEY_PORT } from "./names.ts";

const database = databaseOf({
  project: exampleDatabase({
    type: "valkey",
    plan: "db-premium_plus",
    version: "9.1.1",
    profile: "key_value",
    instances: undefined,
  }),
});
const address = (ordinal: number) => nodeAddress(database, ordinal);

/** Replies with a file named after host and port; without one it cannot connect. */
const CLI = `#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in -h) host=$2 ;; -p) port=$2 ;; esac
  shift
done
cat "$ANSWERS/$host:$port" 2>/dev/null
`;

/** Reports that it was started, and keeps what it was started with. */
const SERVER = `#!/bin/sh
cat "$1" >"$ANSWERS/started.new" && mv "$ANSWERS/started.new" "$ANSWERS/started"
`;

/** The start of the pod 0, with every path in a folder of its own, among peers that reply as the test has it. */
class Pod {
  readonly folder = mkdtempSync(join(tmpdir(), "valkey-start-"));
  #process?: ChildProcess;

  constructor() {
    for (const path of ["bin", "answers", "data", "run", "etc"]) {
      mkdirSync(join(this.folder, path));
    }
    writeFileSync(join(this.folder, "bin/valkey-cli"), CLI, { mode: 0o755 });
    writeFileSync(join(this.folder, "bin/valkey-server"), SERVER, { mode: 0o755 });
  }

  /** What the Sentinel of a pod considers the primary. */
  sentinel(ordinal: number, primary: number, epoch: number, flags = "master"): void {
    const text = `ip\n${address(primary)}\nport\n6379\nflags\n${flags}\nconfig-epoch\n${epoch}\n`;
    this.#answers(`${address(ordinal)}:${SENTINEL_PORT}`, text);
  }

  keys(ordinal: number, count: number): void {
    this.#answers(`${address(ordinal)}:${VALKEY_PORT}`, `${count}\n`);
  }

  start(peers = [0, 1, 2]): void {
    const { folder } = this;
    const script = (files(database)["start.sh"] ?? "")
      .replaceAll(paths.volume, `${folder}/data`)
      .replaceAll(paths.run, `${folder}/run`)
      .replaceAll(paths.config, `${folder}/etc`);
    const env = {
      PATH: `${folder}/bin:/usr/bin:/bin`,
      ANSWERS: `${folder}/answers`,
      SLIPWAY_ADDRESS: address(0),
      SLIPWAY_PEERS: peers.length > 1 ? peers.map(address).join(" ") : "",
      SLIPWAY_USERNAME: "app",
      SLIPWAY_PASSWORD: "clear-text",
      SLIPWAY_ADMIN_PASSWORD: "admin-text",
      SLIPWAY_REPLICATION_PASSWORD: "replication",
      SLIPWAY_MONITOR_PASSWORD: "monitor-text",
    };
    this.#process = spawn("sh", ["-c", script], { env, stdio: "ignore" });
  }

  /** The server's configuration, once it was started. */
  async started(): Promise<string> {
    const file = join(this.folder, "answers/started");
    for (let tries = 0; tries < 200 && !existsSync(file); tries += 1) {
      await sleep(50);
    }
    return readFileSync(file, "utf8");
  }

  async waits(): Promise<boolean> {
    await sleep(1_500);
    return !existsSync(join(this.folder, "answers/started")) && this.#process?.exitCode === null;
  }

  read(path: string): string {
    return readFileSync(join(this.folder, path), "utf8");
  }

  close(): void {
    this.#process?.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  #answers(from: string, text: string): void {
    writeFileSync(join(this.folder, "answers", from), text);
  }
}

let pod: Pod | undefined;
afterEach(() => pod?.close());
const aPod = () => {
  pod = new Pod();
  return pod;
};

describe("a server", () => {
  test("follows the primary that the newest Sentinel knows", async () => {
    const pod = aPod();
    pod.sentinel(1, 0, 3);
    pod.sentinel(2, 1, 12);
    pod.start();
    expect(await pod.started()).toContain(`replicaof ${address(1)} 6379`);
  });

  test("has its accounts as hashes alone", async () => {
    const pod = aPod();
    pod.start([0]);
    const conf = await pod.started();
    expect(conf).not.toContain("replicaof");
    const acl = pod.read("run/users.acl");
    const hash = createHash("sha256").update("clear-text").digest("hex");
    expect(acl).toContain(`user app on #${hash} ~* &* +@all -@admin`);
    expect(acl).toMatch(/^user default off resetpass -@all$/m);
    expect(acl.split("\n")).toHaveLength(6);
    expect(acl).not.toMatch(/-text/);
  });

  test("begins as the primary when nobody has any data", async () => {
    const pod = aPod();
    pod.sentinel(1, 0, 0);
    pod.keys(1, 0);
    pod.keys(2, 0);
    pod.start();
    expect(await pod.started()).not.toContain("replicaof");
  });

  test("begins as the primary when it has its data", async () => {
    const pod = aPod();
    mkdirSync(join(pod.folder, "data/valkey/appendonlydir"), { recursive: true });
    pod.sentinel(1, 0, 4);
    pod.start();
    expect(await pod.started()).not.toContain("replicaof");
  });

  test("begins as no primary while it is being replaced, even with its data", async () => {
    const pod = aPod();
    mkdirSync(join(pod.folder, "data/valkey/appendonlydir"), { recursive: true });
    pod.sentinel(0, 0, 4, "master,o_down,failover_in_progress");
    pod.sentinel(1, 0, 4);
    pod.start();
    expect(await pod.waits()).toBe(true);
    pod.sentinel(1, 2, 5);
    expect(await pod.started()).toContain(`replicaof ${address(2)} 6379`);
  });

  test.each([
    ["another one has data", 5],
    ["another one does not report", undefined],
  ])("without its data begins as no primary while %s", async (_, count) => {
    const pod = aPod();
    pod.sentinel(1, 0, 0);
    pod.keys(1, 0);
    if (count !== undefined) {
      pod.keys(2, count);
    }
    pod.start();
    expect(await pod.waits()).toBe(true);
    pod.sentinel(2, 2, 1);
    expect(await pod.started()).toContain(`replicaof ${address(2)} 6379`);
  });

  test("waits for a Sentinel", async () => {
    const pod = aPod();
    pod.start();
    expect(await pod.waits()).toBe(true);
  });
});
