import { type DatabaseCredentials, hashWithPassword, passwordInForce } from "@slipway/crds";
import { expect, test, vi } from "vitest";
import { exampleCredentials } from "../../../test/kit/databases/examples.ts";
import { planPasswords, statusWithKept } from "./previous-password.ts";

const now = new Date("2026-03-01T00:00:00Z");
const DAY_MS = 86_400_000;
const UNTIL = "2026-03-02T00:00:00.000Z";

const settled: DatabaseCredentials = { ...exampleCredentials, password: "new" };
const renewing = { ...settled, "previous-password": "old" };
const keeping = { ...settled, "kept-password": "old", "kept-until": UNTIL };

const plan = (credentials: DatabaseCredentials, used: readonly string[], at = now, keepMs = DAY_MS) => {
  const hashes = used.map((password) => hashWithPassword(credentials, password));
  return planPasswords(credentials, { isUsed: async (hash) => hashes.includes(hash), now: at, keepMs });
};

test("a database that has one password is not asked about", async () => {
  const isUsed = vi.fn(async () => true);
  const planned = await planPasswords(settled, { isUsed, now, keepMs: DAY_MS });
  expect(planned).toEqual({ credentials: settled });
  expect(isUsed).not.toHaveBeenCalled();
});

test.each([
  ["nothing uses it", {}, [], now, DAY_MS],
  ["nothing uses this one", {}, ["new", "older"], now, DAY_MS],
  ["it is to be revoked", { "revoke-previous": "true" }, ["old"], now, DAY_MS],
  ["none is to be kept", {}, ["old"], now, 0],
])("the password before a renewal ends with it where %s", async (_, more, used, at, keepMs) => {
  const planned = await plan({ ...renewing, ...more }, used, at, keepMs);
  expect(planned.credentials).toEqual(settled);
  expect(planned.previous).toBeUndefined();
  const removed = Object.fromEntries(
    Object.keys({ "previous-password": "", ...more }).map((key) => [key, null]),
  );
  expect(planned.change).toEqual(removed);
  expect(planned.ended).toBeUndefined();
});

test("the password before a renewal is accepted beside the new one where something uses it, for a bounded time", async () => {
  const planned = await plan(renewing, ["old"]);
  expect(planned).toEqual({
    credentials: renewing,
    previous: { password: "old", until: UNTIL },
    change: { "previous-password": null, "kept-password": "old", "kept-until": UNTIL },
  });
});

test("one that is kept stays as it is while something uses it", async () => {
  const planned = await plan(keeping, ["old"]);
  expect(planned).toEqual({
    credentials: renewing,
    previous: { password: "old", until: UNTIL },
    change: undefined,
  });
});

test.each([
  ["nothing uses it any more", keeping, [], now, DAY_MS, "unused"],
  ["its time is over", keeping, ["old"], new Date(UNTIL), DAY_MS, "expired"],
  ["its time is over, and nothing uses it", keeping, [], new Date(UNTIL), DAY_MS, "unused"],
  ["its time is unknown", { ...keeping, "kept-until": "soon" }, ["old"], now, DAY_MS, "expired"],
  ["none is to be kept any more", keeping, ["old"], now, 0, "expired"],
])("one that is kept ends when %s", async (_, credentials, used, at, keepMs, ended) => {
  const planned = await plan(credentials, used, at, keepMs);
  expect(planned.credentials).toEqual(settled);
  expect(planned.change).toEqual({ "kept-password": null, "kept-until": null });
  expect(planned.ended).toBe(ended);
});

test("a shorter bound is one of what is kept, once, and a longer one is not", async () => {
  const shorter = await plan(keeping, ["old"], now, 3_600_000);
  const until = "2026-03-01T01:00:00.000Z";
  expect(shorter.change).toEqual({ "kept-until": until });
  const later = new Date("2026-03-01T00:30:00Z");
  const written = { ...keeping, "kept-until": until };
  expect(await plan(written, ["old"], later, 3_600_000)).toMatchObject({
    change: undefined,
    previous: { until },
  });
  expect((await plan(keeping, ["old"], now, 7 * DAY_MS)).previous?.until).toBe(UNTIL);
});

test("a renewal while one is kept ends the oldest", async () => {
  const again = { ...keeping, password: "newest", "previous-password": "new" };
  const later = new Date("2026-03-01T01:00:00Z");
  const planned = await plan(again, ["old", "new"], later);
  expect(planned.previous?.password).toBe("new");
  expect(planned.credentials).toEqual({ ...settled, password: "newest", "previous-password": "new" });
  const until = "2026-03-02T01:00:00.000Z";
  expect(planned.change).toEqual({ "previous-password": null, "kept-password": "new", "kept-until": until });
  expect(planned.ended).toBe("replaced");
  const leaked = await plan({ ...again, "revoke-previous": "true" }, ["old", "new"]);
  expect(leaked.previous).toBeUndefined();
  expect(Object.values(leaked.change ?? {})).toEqual([null, null, null, null]);
});

test("a renewal whose password before was given to nothing keeps the one that is kept, for as long as before", async () => {
  const again = { ...keeping, password: "newest", "previous-password": "new" };
  const planned = await plan(again, ["old"], new Date("2026-03-01T01:00:00Z"));
  expect(planned).toEqual({
    credentials: { ...settled, password: "newest", "previous-password": "old" },
    previous: { password: "old", until: UNTIL },
    change: { "previous-password": null },
  });
  expect((await plan(again, [])).previous).toBeUndefined();
  const leaked = await plan({ ...again, "revoke-previous": "true" }, ["old"]);
  expect(leaked.previous).toBeUndefined();
  expect(leaked.ended).toBe("revoked");
});

test("what the change leaves in the Secret is decided in the same way again, and changes nothing", async () => {
  for (const used of [[], ["old"]]) {
    const first = await plan(renewing, used);
    const written = Object.entries({ ...renewing, ...first.change }).filter(([, value]) => value !== null);
    const second = await plan(Object.fromEntries(written) as DatabaseCredentials, used);
    expect(second).toEqual({ ...first, change: undefined });
  }
});

test("a password is known to be in force in whichever place of the Secret it is", () => {
  const hash = hashWithPassword(settled, "old");
  expect(passwordInForce(renewing, hash)).toBe("old");
  expect(passwordInForce(keeping, hash)).toBe("old");
  expect(passwordInForce(settled, hash)).toBeUndefined();
});

test("engines are given what the Secret has, where the status has not got it", () => {
  expect(statusWithKept({}, settled)).toEqual({});
  expect(statusWithKept({}, keeping)).toEqual({ previousPassword: { until: UNTIL } });
  const known = { previousPassword: { until: "2026-01-01T00:00:00Z" } };
  expect(statusWithKept(known, keeping)).toBe(known);
});
