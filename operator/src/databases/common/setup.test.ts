import type { DatabaseStatus } from "@slipway/crds";
import { expect, test, vi } from "vitest";
import {
  databaseOf,
  exampleCredentials,
  exampleDatabase,
  liveOf,
  podOf,
} from "../../../../test/kit/databases/examples.ts";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { certificatesHash, mustSetPassword, readCertificates, type SetUp, setUpOnce } from "./setup.ts";

const database = databaseOf({ project: exampleDatabase() });
const answer = { exitCode: 0, stdout: "17.1|42", stderr: "" };
const parse = () => ({ version: "17.1", identity: "42" });
const errors = /^ERROR ([0-9]+)/gm;
const revision = "1";
const credentials = exampleCredentials;

test("accounts are set up once for each process of the primary and each content of the Secret", async () => {
  const run = vi.fn(async () => answer);
  const memory: { setUp?: SetUp } = {};
  const log = { warn: vi.fn() } as never;
  const on = (startedAt: string, of = database) =>
    setUpOnce(
      of,
      podOf(0, { startedAt }),
      memory,
      { run, parse, errors, revision },
      { credentials, log, status: {} },
    );
  const reported = { runningVersion: "17.1", identity: "42", credentialsHash: database.credentialsHash };
  expect(await on("2026-01-01T00:00:00Z")).toMatchObject(reported);
  expect(await on("2026-01-01T00:00:00Z")).toMatchObject(reported);
  expect(run).toHaveBeenCalledTimes(1);
  await on("2026-01-02T00:00:00Z");
  expect(run).toHaveBeenCalledTimes(2);
  await on("2026-01-02T00:00:00Z", { ...database, credentialsHash: "another" });
  await on("2026-01-02T00:00:00Z", { ...database, credentialsHash: "another", accountsHash: "another" });
  expect(run).toHaveBeenCalledTimes(4);
});

test("of what went wrong only numbers are logged, and it is done again", async () => {
  const stderr = "ERROR 1045 (28000) at line 3: near 'a secret'";
  const warn = vi.fn();
  const run = vi.fn(async () => ({ exitCode: 1, stdout: "", stderr }));
  const memory: { setUp?: SetUp } = {};
  for (let i = 0; i < 2; i += 1) {
    const log = { warn } as never;
    const setting = { run, parse, errors, revision };
    expect(
      await setUpOnce(database, podOf(0), memory, setting, { credentials, log, status: {} }),
    ).toBeUndefined();
  }
  expect(run).toHaveBeenCalledTimes(2);
  expect(warn.mock.calls[0]?.[0]).toEqual({ exitCode: 1, errors: ["1045"] });
});

test("a process reads a certificate once it is mounted, and one that has started since not at all", async () => {
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const certificate = { serial: "02", signedAt: new Date("2026-03-01T00:00:00Z") };
  const live = liveOf([
    podOf(0),
    podOf(1, { startedAt: "2026-03-01T00:04:00Z" }),
    podOf(2, { ready: false }),
  ]);
  const reload = vi.fn(async () => true);
  let known = new Map<string, string>();
  const read = async () => {
    known = await readCertificates(live, known, reload, { certificate, clock, status: {} });
  };
  await read();
  expect(reload).not.toHaveBeenCalled();
  await clock.advance(5 * 60_000);
  reload.mockResolvedValueOnce(false);
  for (let i = 0; i < 3; i += 1) {
    await read();
  }
  expect(reload).toHaveBeenCalledTimes(2);
  expect([...known.values()]).toEqual(["02", "02"]);
  const status = { certificatesHash: certificatesHash(known) };
  expect(await readCertificates(live, new Map(), reload, { certificate, clock, status })).toEqual(known);
  expect(reload, "after a change of leader").toHaveBeenCalledTimes(2);
});

test("another leader sets up again what another process, password or script makes necessary, and nothing else", async () => {
  const run = vi.fn(async () => answer);
  const log = { warn: vi.fn() } as never;
  const lead = (
    status: DatabaseStatus,
    of = database,
    startedAt = "2026-01-01T00:00:00Z",
    script = revision,
    given = credentials,
  ) =>
    setUpOnce(
      of,
      podOf(0, { startedAt }),
      {},
      { run, parse, errors, revision: script },
      { credentials: given, log, status },
    );
  const status = (await lead({})) ?? {};
  expect(await lead(status)).toEqual(status);
  expect(run).toHaveBeenCalledTimes(1);
  await lead(status, { ...database, credentialsHash: "another" });
  await lead(status, { ...database, accountsHash: "another" });
  await lead(status, database, "2026-01-02T00:00:00Z");
  await lead(status, database, undefined, "2");
  expect(run).toHaveBeenCalledTimes(5);
  const two = { ...credentials, "previous-password": "old" };
  const kept = (await lead(status, database, undefined, revision, two)) ?? {};
  expect(run).toHaveBeenCalledTimes(6);
  await lead(kept, database, undefined, revision, two);
  expect(run).toHaveBeenCalledTimes(6);
  await lead(kept);
  expect(run, "the previous one has ended").toHaveBeenCalledTimes(7);
});

test.each([
  ["a settled database", {}, {}, false],
  ["another password", {}, { credentialsHash: "before" }, true],
  ["a previous one that is accepted", { "previous-password": "old" }, {}, true],
  ["a previous one that was", {}, { previousPassword: { until: "2026-01-01T00:00:00Z" } }, true],
] as const)("of %s the password is set: %s", (_, more, status, expected) => {
  const of = { credentialsHash: "now" };
  const context = { credentials: { ...credentials, ...more }, status: { credentialsHash: "now", ...status } };
  expect(mustSetPassword(of, context)).toBe(expected);
});
