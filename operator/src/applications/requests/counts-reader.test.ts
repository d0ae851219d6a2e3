import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { KubernetesObject } from "@slipway/controller-runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { readCounts } from "./counts-reader.ts";

let server: Server;
let answer: { status?: number; body: string };
let requests: string[];
let ingress: object[];
let collectors: object[];

beforeEach(async () => {
  requests = [];
  answer = {
    body: JSON.stringify({ process: "one", at: 7_000, complete: true, counts: { "acme/pshop": 5 } }),
  };
  ingress = [pod("node-1", "traefik"), pod("node-2", "traefik"), pod("node-3", "other")];
  collectors = ["node-1", "node-2", "node-3"].map((node) => pod(node, "collector"));
  server = createServer((request, response) => {
    requests.push(request.url ?? "");
    response.writeHead(answer.status ?? 200).end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(() => void server.close());

const pod = (nodeName: string, container: string, change: object = {}) => ({
  metadata: { name: `${container}-${nodeName}` },
  spec: { nodeName, containers: [{ name: container }] },
  status: { phase: "Running", podIP: "127.0.0.1" },
  ...change,
});

const read = () =>
  readCounts(
    {
      client: {
        listAll: async <T extends KubernetesObject>(_: unknown, { namespace }: { namespace?: string } = {}) =>
          (namespace === "ingress" ? ingress : collectors) as unknown as T[],
      },
      clock: new FakeClock(),
      ingress: { namespace: "ingress", container: "traefik" },
      collectors: { namespace: "collectors", port: (server.address() as AddressInfo).port },
    },
    AbortSignal.timeout(10_000),
  );

// Shows: docs/applications.md#scaling-by-requests: nothing is read as long as no project is scaled by them; after that one request for each
test("each node with a pod of the ingress is read once, for all projects", async () => {
  const round = await read();
  const one = { process: "one", at: 7_000, complete: true, counts: new Map([["acme/pshop", 5]]) };
  expect(round).toMatchObject({ complete: true, readings: [one, one], failures: [] });
  expect(requests).toEqual(["/requests", "/requests"]);
});

test("without a pod of the ingress nothing is complete", async () => {
  ingress = [pod("node-1", "traefik", { status: { phase: "Pending" } })];
  expect(await read()).toMatchObject({ complete: false, readings: [] });
  expect(requests).toEqual([]);
});

test.each<[string, () => void, RegExp]>([
  ["a node without a collector", () => (collectors = [pod("node-1", "collector")]), /no collector/],
  [
    "a collector that is being deleted",
    () => {
      collectors = [
        pod("node-1", "collector"),
        pod("node-2", "collector", { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }),
      ];
    },
    /no collector/,
  ],
  // Such as one that has ended, whose address another pod may have now.
  [
    "a collector that does not run",
    () => {
      const status = { phase: "Failed", podIP: "127.0.0.1" };
      collectors = [pod("node-1", "collector"), pod("node-2", "collector", { status })];
    },
    /no collector/,
  ],
  ["one that has no counts", () => (answer = { status: 404, body: "" }), /404/],
  ["an answer that is none", () => (answer = { body: '{"process":"one","counts":{"a":-1}}' }), /complete/],
  ["an answer without an end", () => (answer = { body: "x".repeat(5 * 1024 * 1024) }), /more than/],
])("%s is a gap", async (_, change, message) => {
  change();
  const { complete, failures = [] } = await read();
  expect(complete).toBe(false);
  expect(String(failures.at(-1)?.error)).toMatch(message);
});
