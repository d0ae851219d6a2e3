import { KubeError } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import type { DesiredObject } from "../desired.ts";
import { reportGrowth } from "../projects/volume.ts";
import { growClaims, type VolumeClaim, withLiveClaim } from "./pvc.ts";

const wanted: DesiredObject[] = [
  {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "shop" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "faster",
      resources: { requests: { storage: "20Gi" } },
    },
  },
  { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "shop" } },
];
const live: VolumeClaim = {
  metadata: { name: "shop", namespace: "slipway-org-alpha", uid: "claim" },
  spec: { storageClassName: "standard", resources: { requests: { storage: "10Gi" } } },
  status: { phase: "Bound" },
};

test("a claim is applied as it is, whatever class and size the catalog and the project have now", () => {
  const [claim, deployment] = withLiveClaim(wanted, live);
  expect(claim?.spec).toEqual({
    accessModes: ["ReadWriteOnce"],
    storageClassName: "standard",
    resources: { requests: { storage: "10Gi" } },
  });
  expect(deployment).toBe(wanted[1]);
  expect(withLiveClaim(wanted, undefined)).toBe(wanted);
});

test("a class that cannot grow a volume is reported once, with the apiserver's words", async () => {
  const refusal = new KubeError({
    status: 403,
    reason: "Forbidden",
    message: "only dynamically provisioned",
  });
  const client = { patch: () => Promise.reject(refusal) } as never;
  const signal = AbortSignal.timeout(5_000);
  const growth = await growClaims([live], 20, client, signal);
  expect(growth).toEqual({ obstacle: "VolumeNotExpandable", refusal: "only dynamically provisioned" });
  expect(await growClaims([{ ...live, status: { phase: "Pending" } }], 20, client, signal)).toEqual({});
  const events: string[] = [];
  const context = { event: (_: string, reason: string, note: string) => events.push(`${reason}: ${note}`) };
  const project = { metadata: { name: "shop" }, spec: {}, status: {} } as never;
  reportGrowth(project, growth, context);
  reportGrowth(
    { ...(project as object), status: { conditions: [{ reason: "VolumeNotExpandable" }] } } as never,
    growth,
    context,
  );
  expect(events).toEqual([
    "VolumeNotExpandable: A volume cannot grow, and keeps its size: only dynamically provisioned",
  ]);
});
