import { expect, test } from "vitest";
import { isReady } from "../jobs/runs/cluster.ts";
import { kubeletAddress, type Node } from "./nodes.ts";

const node = (status: Node["status"]): Node => ({ metadata: { name: "n1" }, status });

test("a kubelet listens at its node's internal address, on the port that the node reports", () => {
  const addresses = [
    { type: "Hostname", address: "n1" },
    { type: "InternalIP", address: "10.0.0.1" },
    { type: "InternalIP", address: "2001:db8::1" },
  ];
  const daemonEndpoints = { kubeletEndpoint: { Port: 10_251 } };
  expect(kubeletAddress(node({ addresses, daemonEndpoints }))).toEqual({ host: "10.0.0.1", port: 10_251 });
  expect(kubeletAddress(node({ addresses }))).toEqual({ host: "10.0.0.1", port: 10_250 });
  // A node without a kubelet reports port 0.
  expect(kubeletAddress(node({ addresses, daemonEndpoints: { kubeletEndpoint: { Port: 0 } } }))?.port).toBe(
    10_250,
  );
  expect(kubeletAddress(node({}))).toBeUndefined();
  expect(kubeletAddress(undefined)).toBeUndefined();
});

test("a node is ready only while its condition is True", () => {
  const ready = (status: string) => isReady(node({ conditions: [{ type: "Ready", status }] }));
  expect([ready("True"), ready("False"), ready("Unknown"), isReady(undefined), isReady(node({}))]).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
});
