import type { Backup } from "@slipway/crds";
import { beforeEach, expect, test } from "vitest";
import { cleanUp } from "./cleanup.ts";
import { NoBucket } from "./s3.ts";
import type { BackupStore } from "./store.ts";

/** What is left of a backup that has failed. */

const backup = {
  metadata: { name: "shop-b1", namespace: "slipway-org-acme" },
  spec: { projectRef: { name: "shop" } },
} as Backup;
const { signal } = new AbortController();

let done: string[];
let running: boolean;
let stored: boolean;
beforeEach(() => {
  done = [];
  [running, stored] = [true, true];
});

const note = async (what: string) => void done.push(what);
const work = {
  stop: async ({ name }: { name: string }) => {
    await note(`stop ${name}`);
    return !running;
  },
  revoke: ({ name }: { name: string }) => note(`revoke ${name}`),
  end: ({ name }: { name: string }) => note(`end ${name}`),
};
const erase: BackupStore["erase"] = async () => {
  await note("erase");
  return stored ? "What is stored is being removed." : undefined;
};
const look = (hasEnded: boolean) =>
  cleanUp(backup, hasEnded, { store: () => ({ erase }) as BackupStore, work }, signal);

test("nothing is removed while its pods may still write", async () => {
  expect(await look(false)).toBe("Its pods are being stopped.");
  expect(done).toEqual(["stop shop-b1-dump"]);
  running = false;
  expect(await look(false)).toBe("What is stored is being removed.");
  stored = false;
  expect(await look(false)).toBeUndefined();
  expect(done.slice(-3)).toEqual(["erase", "revoke shop-b1-dump", "end shop-b1-erase"]);
});

test("a removed bucket does not prevent failures", async () => {
  const gone = { erase: () => Promise.reject(new NoBucket()) } as unknown as BackupStore;
  expect(await cleanUp(backup, true, { store: () => gone, work }, signal)).toBeUndefined();
  const silent = { erase: () => Promise.reject(new Error("no answer")) } as unknown as BackupStore;
  await expect(cleanUp(backup, true, { store: () => silent, work }, signal)).rejects.toThrow("no answer");
});

test("a Job that has ended stays, with what its containers have said", async () => {
  stored = false;
  expect(await look(true)).toBeUndefined();
  expect(done).toEqual(["erase", "revoke shop-b1-dump", "end shop-b1-erase"]);
});
