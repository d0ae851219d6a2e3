import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync } from "node:fs";
import { chmod, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { newestTools, unprivilegedAccount } from "../../test/kit/servers/postgresql.ts";
import { chartDir } from "./render.ts";

/** The scripts that make the data of a ledger with two instances, or take over those of one, on a real PostgreSQL. */

const tools = newestTools();
const account = unprivilegedAccount();
const own = async (path: string) => account && chownSync(path, account.uid, account.gid);
let scripts: string;
let folder: string;

beforeAll(async () => {
  scripts = await mkdtemp(join(tmpdir(), "slipway-ledger-scripts-"));
  await cp(join(chartDir, "files/ledger"), scripts, { recursive: true });
  await chmod(scripts, 0o755);
});
afterAll(() => rm(scripts, { recursive: true, force: true }));

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-ledger-data-"));
  await writeFile(join(folder, "password"), "passwordoftheledger");
  await own(folder);
  return () => rm(folder, { recursive: true, force: true });
});

/** Runs a shell's command as PostgreSQL's account. @returns what it wrote */
async function sh(command: string, input = ""): Promise<string> {
  const child = spawn("/bin/sh", ["-euc", command], {
    cwd: folder,
    ...account,
    env: {
      PATH: `${tools}:/usr/bin:/bin`,
      PGDATA: join(folder, "pgdata"),
      LEDGER_PASSWORD_FILE: join(folder, "password"),
      SUPERUSER_PASSWORD: "passwordofthesuperuser",
      REPLICATION_PASSWORD: "passwordofreplication",
      CONNECTIONS: "60",
    },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  // A command that ends early closes its input; its exit code explains more than EPIPE.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) {
    throw new Error(`${command} ended with ${code}: ${output}`);
  }
  return output;
}

/** Runs statements, each ended by an empty line, on the stopped server. */
const sql = (database: string, text: string) =>
  sh(`postgres --single -j -D "$PGDATA" ${database}`, `${text};\n\n`);

const prepare = () => sh(`. ${scripts}/prepare.sh; prepare "$PGDATA"`);

const isPrepared = () => existsSync(join(folder, "pgdata/slipway.prepared"));

async function accounts(): Promise<string[]> {
  const output = await sql(
    "ledger",
    "select rolname || ' ' || rolsuper || ' ' || rolreplication as account from pg_authid where rolpassword like 'SCRAM%' order by 1",
  );
  return [...output.matchAll(/account = "([^"]+)"/g)].map(([, found = ""]) => found);
}

const expected = [
  "postgres true false",
  "slipway true true",
  "slipway_replication false true",
  "slipway_rewind false false",
];

test("a new ledger has its database, its accounts and no more connections than are wanted", async () => {
  const output = await sh(`sh ${scripts}/initialize.sh`);
  expect(isPrepared()).toBe(true);
  expect(output).not.toContain("passwordof");
  // What a standby would start with at least.
  expect(await sh("pg_controldata")).toMatch(/max_connections setting: +60\n/);
  expect(await accounts()).toEqual(expected);
});

test("a crash in the middle leaves nothing that looks like data", async () => {
  await sh('mkdir -p "$PGDATA.initializing/base"');
  await sh(`sh ${scripts}/initialize.sh`);
  expect(existsSync(join(folder, "pgdata.initializing"))).toBe(false);
  expect(await accounts()).toEqual(expected);
});

test("the data of a single instance keep their rows, also when they are prepared again", async () => {
  await sh('initdb --pgdata="$PGDATA" --username=slipway --auth=reject --encoding=UTF8 --locale=C.UTF-8');
  await sql("postgres", "create database ledger");
  await sql("ledger", "create table kept as select generate_series(1, 1000) as id");
  for (const _ of [1, 2]) {
    expect(await prepare()).not.toContain("passwordof");
    expect(isPrepared()).toBe(true);
    expect(await accounts()).toEqual(expected);
    expect(await sql("ledger", "select count(*) as rows from kept")).toContain('rows = "1000"');
  }
});

test("what cannot be prepared is not taken for prepared", async () => {
  await sh('initdb --pgdata="$PGDATA" --username=other --auth=reject --encoding=UTF8 --locale=C.UTF-8');
  await expect(prepare()).rejects.toThrow("could not be prepared for two instances");
  expect(isPrepared()).toBe(false);
});
