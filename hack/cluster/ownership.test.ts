import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { claimMachine, ownerOfMachine } from "./ownership.ts";
import { startTime } from "./processes.ts";

describe("the owner of a machine's embedded cluster", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "owner-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const claim = (pid: number, started: string) =>
    writeFileSync(join(folder, "owner"), JSON.stringify({ root: "/checkout", pid, startTime: started }));
  const daemon = (pid: number, started: string) =>
    writeFileSync(join(folder, "etcd.pid"), JSON.stringify({ pid, startTime: started, hash: "" }));
  const own = startTime(process.pid) ?? "";

  test("is nobody before the first claim", () => {
    expect(ownerOfMachine(folder)).toBeUndefined();
  });

  test("is alive while the process that claimed the machine starts the cluster", async () => {
    await claimMachine(folder, "/checkout");
    expect(ownerOfMachine(folder)).toEqual({ root: "/checkout", alive: true });
  });

  test("is alive while one of its daemons runs", () => {
    claim(process.pid, "1");
    daemon(process.pid, own);
    expect(ownerOfMachine(folder)).toEqual({ root: "/checkout", alive: true });
  });

  test("is not alive when its processes have ended, though later ones have the same ids", () => {
    claim(process.pid, "1");
    daemon(process.pid, "1");
    expect(ownerOfMachine(folder)).toEqual({ root: "/checkout", alive: false });
  });

  test("is read from a file of an earlier version, which has the checkout's path alone", () => {
    writeFileSync(join(folder, "owner"), "/checkout");
    expect(ownerOfMachine(folder)).toEqual({ root: "/checkout", alive: false });
    daemon(process.pid, own);
    expect(ownerOfMachine(folder)).toEqual({ root: "/checkout", alive: true });
  });
});
