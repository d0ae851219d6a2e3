import { FakeClock } from "@slipway/kube/testing";
import { expect, test, vi } from "vitest";
import { databaseOf, exampleDatabase, liveOf, podOf } from "../testing.ts";
import { readCertificates, type SetUp, setUpOnce } from "./tending.ts";

const database = databaseOf({ project: exampleDatabase() });
const answer = { exitCode: 0, stdout: "17.1|42", stderr: "" };
const parse = () => ({ version: "17.1", identity: "42" });
const errors = /^ERROR ([0-9]+)/gm;

test("accounts are set up once for each process of the primary and each content of the Secret", async () => {
  const run = vi.fn(async () => answer);
  const memory: { setUp?: SetUp } = {};
  const log = { warn: vi.fn() } as never;
  const on = (startedAt: string, of = database) =>
    setUpOnce(of, podOf(0, { startedAt }), memory, { run, parse, errors }, { log });
  const told = { runningVersion: "17.1", identity: "42", credentialsHash: database.credentialsHash };
  expect(await on("2026-01-01T00:00:00Z")).toEqual(told);
  expect(await on("2026-01-01T00:00:00Z")).toEqual(told);
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
    expect(await setUpOnce(database, podOf(0), memory, { run, parse, errors }, { log })).toBeUndefined();
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
    known = await readCertificates(live, known, reload, { certificate, clock });
  };
  await read();
  expect(reload).not.toHaveBeenCalled();
  await clock.advance(5 * 60_000);
  reload.mockResolvedValueOnce(false);
  for (let i = 0; i < 3; i += 1) await read();
  expect(reload).toHaveBeenCalledTimes(2);
  expect([...known.values()]).toEqual(["02", "02"]);
});
