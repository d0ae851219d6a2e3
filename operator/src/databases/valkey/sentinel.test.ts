import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { databaseOf, exampleDatabase } from "../../../../test/kit/databases/examples.ts";
import { files } from "./config.ts";
import { nodeAddress, paths } from "./names.ts";

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

/** Rewrites its file as a Sentinel does that has seen another instance take over. */
const SENTINEL = `#!/bin/sh
cp "$1" "$FOLDER/began"
sleep 1
sed 's/^sentinel monitor .*/sentinel monitor primary ${address(2)} 6379 2/' "$FOLDER/began" >"$1"
echo 'sentinel config-epoch primary 7' >>"$1"
echo 'sentinel known-replica primary ${address(0)} 6379' >>"$1"
exec sleep 60
`;

/** Answers as a Sentinel does that knows as many replicas as the file says, and records the requests. */
const CLIENT = `#!/bin/sh
case "$*" in
  *'SENTINEL PRIMARY'*) printf 'num-slaves\\n%s\\nnum-other-sentinels\\n2\\n' "$(cat "$FOLDER/replicas")" ;;
  *) echo "$(cat "$FOLDER/replicas"): $*" >>"$FOLDER/requests" ;;
esac
`;

const folder = mkdtempSync(join(tmpdir(), "valkey-sentinel-"));
let running: ChildProcess | undefined;
beforeAll(() => {
  for (const path of ["bin", "etc"]) {
    mkdirSync(join(folder, path));
  }
  writeFileSync(join(folder, "bin/valkey-sentinel"), SENTINEL, { mode: 0o755 });
  writeFileSync(join(folder, "bin/valkey-cli"), CLIENT, { mode: 0o755 });
  writeFileSync(join(folder, "etc/sentinel.conf"), files(database)["sentinel.conf"] ?? "");
});
afterEach(() => void running?.kill("SIGKILL"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function start(): ChildProcess {
  const script = (files(database)["sentinel.sh"] ?? "")
    .replaceAll(paths.sentinelState, `${folder}/state`)
    .replaceAll(paths.run, `${folder}/run`)
    .replaceAll(paths.config, `${folder}/etc`);
  const env = {
    PATH: `${folder}/bin:/usr/bin:/bin`,
    FOLDER: folder,
    SLIPWAY_ADDRESS: address(1),
    SLIPWAY_PEERS: [0, 1, 2].map(address).join(" "),
    SLIPWAY_REPLICATION_PASSWORD: "a-secret",
  };
  running = spawn("sh", ["-c", script], { env, stdio: "ignore" });
  return running;
}

async function read(file: string, wanted: string): Promise<string> {
  const text = () => (existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8") : "");
  for (let tries = 0; tries < 200 && !text().includes(wanted); tries += 1) {
    await sleep(50);
  }
  return text();
}

test("a Sentinel knows what it knew before, and the volume no password", async () => {
  writeFileSync(join(folder, "replicas"), "0\n");
  const first = start();
  const began = await read("began", "parallel-syncs");
  expect(began).toContain(`sentinel monitor primary ${address(0)} 6379 2\n`);
  expect(began).toMatch(/^sentinel myid [0-9a-f]{40}$/m);
  expect(began).toContain("sentinel auth-pass primary a-secret\n");
  const state = await read("state", "known-replica");
  expect(state).toContain(`sentinel monitor primary ${address(2)} 6379 2\n`);
  expect(state).not.toContain("a-secret");
  const ended = once(first, "exit");
  first.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);

  rmSync(join(folder, "began"));
  start();
  const again = await read("began", "known-replica");
  expect(again).toContain(`sentinel monitor primary ${address(2)} 6379 2\n`);
  expect(again).toContain("sentinel config-epoch primary 7\n");
  expect(again.match(/^sentinel monitor/gm)).toHaveLength(1);
  expect(again.indexOf("sentinel monitor")).toBeLessThan(again.indexOf("sentinel auth-pass"));
});

test("a Sentinel queries replicas every second until it knows all of them", async () => {
  writeFileSync(join(folder, "replicas"), "1\n");
  rmSync(join(folder, "requests"), { force: true });
  start();
  const periods = async (wanted: string) =>
    (await read("requests", wanted)).split("\n").filter((line) => line.includes("info-period"));
  expect(await periods("info-period 1000")).toEqual([
    expect.stringMatching(/^1: .*SENTINEL DEBUG tilt-period 5000 info-period 1000$/),
  ]);
  writeFileSync(join(folder, "replicas"), "2\n");
  expect(await periods("info-period 10000")).toEqual([
    expect.stringMatching(/^1: .*1000$/),
    expect.stringMatching(/^2: .*SENTINEL DEBUG info-period 10000$/),
  ]);
});
