import { expect, test } from "vitest";
import { countByClient, latencies, parseWrite, type Write } from "./audit.ts";

const event = (change: object): string =>
  JSON.stringify({
    verb: "patch",
    userAgent: "slipway.dev/operator",
    objectRef: { resource: "deployments", name: "pbench0000000001" },
    responseStatus: { code: 200 },
    stageTimestamp: "2026-11-28T12:00:01.250500Z",
    ...change,
  });

test("a write is read with its client and its microseconds", () => {
  expect(parseWrite(event({}))).toEqual({
    at: Date.parse("2026-11-28T12:00:01Z") + 250.5,
    client: "slipway.dev/operator",
    what: "patch deployments",
    resource: "deployments",
    name: "pbench0000000001",
  });
  const status = { resource: "projects", subresource: "status", name: "x" };
  expect(parseWrite(event({ verb: "update", objectRef: status }))?.what).toBe("update projects/status");
});

test.each([
  ["a read", { verb: "get" }],
  ["a refused write", { responseStatus: { code: 409 } }],
  ["the renewal of a Lease", { objectRef: { resource: "leases", name: "operator" } }],
])("%s is no write", (_, change) => {
  expect(parseWrite(event(change))).toBeUndefined();
});

test.each([
  ["kube-controller-manager/v1.34.4 (linux/amd64) kubernetes/abc/system:serviceaccount:x", "controllers"],
  ["kubectl/v1.34.4 (linux/amd64) kubernetes/abc", "kubectl"],
  ["peer", "peer"],
])("the client of %s is %s", (userAgent, client) => {
  expect(parseWrite(event({ userAgent }))?.client).toBe(client);
});

const write = (at: number, client: string, resource: string, name: string): Write => ({
  at,
  client,
  what: `patch ${resource}`,
  resource,
  name,
});

test("an object is applied with the last write on its children, by the operator and not by others", () => {
  const writes = [
    write(10, "bench", "projects", "p1"),
    write(11, "bench", "projects", "p2"),
    write(20, "ours", "services", "p1"),
    write(30, "ours", "deployments", "p1-web"),
    write(40, "controllers", "deployments", "p1"),
    write(50, "ours", "projects", "p1"),
    write(60, "ours", "ingresses", "p2"),
    write(70, "ours", "services", "other"),
  ];
  const found = latencies(writes, { names: ["p1", "p2"], client: "bench", operator: "ours" });
  expect(found).toEqual([20, 49]);
});

test("writes are counted by client and kind", () => {
  const writes = [write(1, "a", "services", "x"), write(2, "a", "services", "y"), write(3, "b", "pods", "x")];
  expect(countByClient(writes)).toEqual(
    new Map([
      ["a", new Map([["patch services", 2]])],
      ["b", new Map([["patch pods", 1]])],
    ]),
  );
});
