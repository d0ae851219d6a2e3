import { silentLogger } from "@slipway/process";
import { expect, test, vi } from "vitest";
import { OrganizationSource } from "./source.ts";

const logger = silentLogger;

test("reports each organization once, and keeps the known ones while the ledger is unavailable", async () => {
  const list = vi.fn<() => Promise<string[]>>();
  const added: string[] = [];
  const source = new OrganizationSource({ list, onAdded: (id) => added.push(id), logger });

  list.mockResolvedValueOnce(["a"]);
  await source.poll();
  list.mockRejectedValueOnce(new Error("connection refused"));
  await source.poll();
  expect(source.has("a")).toBe(true);
  list.mockResolvedValueOnce(["a", "b"]);
  await source.poll();

  expect(added).toEqual(["a", "b"]);
});

test("stops polling when it is aborted", async () => {
  const list = vi.fn(async () => ["a"]);
  const stop = new AbortController();
  const source = new OrganizationSource({ list, onAdded: () => stop.abort(), logger, pollMs: 60_000 });
  await source.run(stop.signal);
  expect(list).toHaveBeenCalledTimes(1);
});
