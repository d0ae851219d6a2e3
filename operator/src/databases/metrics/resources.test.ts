import { podReadingsOf } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { Resources, resourceOf, UNKNOWN } from "./resources.ts";

/** As a kubelet answers, shortened. */
const summary = {
  pods: [
    {
      podRef: { name: "pshop-0", uid: "uid-0" },
      containers: [
        {
          name: "database",
          startTime: "2026-01-01T00:00:00Z",
          cpu: {
            time: "2026-01-01T00:01:00Z",
            usageNanoCores: 250_000_000,
            usageCoreNanoSeconds: 9_000_000_000,
          },
          memory: { time: "2026-01-01T00:01:00Z", workingSetBytes: 104_857_600 },
        },
      ],
      volume: [
        { name: "tmp", usedBytes: 4_096, capacityBytes: 1_000_000 },
        { name: "data", usedBytes: 73_400_320, capacityBytes: 1_073_741_824 },
      ],
    },
    { podRef: { name: "pshop-1", uid: "uid-1" }, containers: [{ name: "database", cpu: {}, memory: {} }] },
  ],
};
const pods = podReadingsOf(summary, "database");

test("resources are those of the server's container and of its volume", () => {
  expect(resourceOf(pods.get("uid-0"))).toEqual({
    cpu_usage_cores: 0.25,
    memory_usage_bytes: 104_857_600,
    storage_used_bytes: 73_400_320,
    storage_capacity_bytes: 1_073_741_824,
  });
});

test("what the kubelet does not know is null", () => {
  expect(resourceOf(pods.get("uid-1"))).toEqual(UNKNOWN);
  expect(resourceOf(undefined)).toEqual(UNKNOWN);
});

function resourcesOf(readPods: () => Promise<typeof pods>) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const results: string[] = [];
  const resources = new Resources({
    kubelets: {
      readPods: ({ host }) => {
        asked.push(host);
        return readPods();
      },
    },
    addressOf: (node) => (node === "deleted" ? undefined : { host: node, port: 10_250 }),
    clock,
    onRead: (result) => results.push(result),
  });
  return { clock, asked, results, resources };
}

test("a node is asked once for all of its pods, and again in the next round", async () => {
  const { asked, clock, resources } = resourcesOf(async () => pods);
  const of = (node: string, podUid = "uid-0") => resources.of({ node, podUid });
  await Promise.all([of("n1"), of("n1", "uid-1"), of("n2"), of("deleted")]);
  expect(asked).toEqual(["n1", "n2"]);
  expect(await of("n1")).toEqual(resourceOf(pods.get("uid-0")));
  await clock.advance(60_000);
  await of("n1");
  expect(asked).toEqual(["n1", "n2", "n1"]);
  expect(clock.pending).toBe(0);
});

test("a kubelet that does not answer, or refuses, leaves them unknown", async () => {
  const silent = resourcesOf(() => new Promise(() => undefined));
  const waiting = silent.resources.of({ node: "n1", podUid: "uid-0" });
  await silent.clock.advance(4_000);
  expect(await waiting).toEqual(UNKNOWN);
  const refusing = resourcesOf(async () => {
    throw new Error("403");
  });
  expect(await refusing.resources.of({ node: "n1", podUid: "uid-0" })).toEqual(UNKNOWN);
  expect([silent.results, refusing.results]).toEqual([["error"], ["error"]]);
  expect(await silent.resources.of({ node: undefined, podUid: "uid-0" })).toEqual(UNKNOWN);
});
