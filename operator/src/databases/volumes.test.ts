import { type KubeClient, KubeError, type ObjectRef } from "@slipway/controller-runtime";
import { describe, expect, test } from "vitest";
import { databaseOf, exampleDatabase, liveOf } from "../../../test/kit/databases/examples.ts";
import type { LiveClaim } from "./driver.ts";
import { growVolumes, readVolumes } from "./volumes.ts";

const project = exampleDatabase({ storage: { persistent: true, capacity: 20 } });
const database = databaseOf({ project });
const signal = AbortSignal.timeout(5_000);

function claim(ordinal: number, request: string, capacity = request, phase = "Bound"): LiveClaim {
  return {
    metadata: { name: `data-shop-${ordinal}`, namespace: "slipway-org-alpha", uid: `claim-${ordinal}` },
    spec: { resources: { requests: { storage: request } } },
    status: { phase, capacity: { storage: capacity } },
  };
}

function recording(pods: readonly string[] = [], refusal?: KubeError) {
  const done: string[] = [];
  const client = {
    patch: async (_: unknown, { name }: ObjectRef, patch: LiveClaim) => {
      if (refusal) {
        throw refusal;
      }
      done.push(`${name} to ${patch.spec?.resources?.requests?.storage}`);
    },
    delete: async (_: unknown, { name }: ObjectRef) => done.push(`delete ${name}`),
    getOrUndefined: async (_: unknown, { name }: ObjectRef) => (pods.includes(name) ? {} : undefined),
  } as unknown as KubeClient;
  return { client, done };
}

describe("volumes grow", () => {
  test("to the size that the project requests, and never shrink", async () => {
    const { client, done } = recording();
    const claims = [claim(0, "10Gi"), claim(1, "20480Mi"), claim(2, "50Gi")];
    expect(await growVolumes(database, liveOf([], { claims }), client, signal)).toEqual({});
    expect(done).toEqual(["data-shop-0 to 20Gi"]);
  });

  test("unless the storage class forbids it", async () => {
    const refusal = new KubeError({ status: 403, reason: "Forbidden", message: "no" });
    const { client } = recording([], refusal);
    const live = liveOf([], { claims: [claim(0, "10Gi")] });
    expect(await growVolumes(database, live, client, signal)).toEqual({
      obstacle: "VolumeNotExpandable",
      refusal: "no",
    });
  });

  test("also where another one cannot", async () => {
    const done: string[] = [];
    const client = {
      patch: async (_: unknown, { name }: ObjectRef) => {
        if (name === "data-shop-0") {
          throw new KubeError({ status: 403, reason: "Forbidden", message: "no" });
        }
        done.push(name);
      },
    } as unknown as KubeClient;
    const live = liveOf([], { claims: [claim(0, "10Gi"), claim(1, "10Gi")] });
    expect((await growVolumes(database, live, client, signal)).obstacle).toBe("VolumeNotExpandable");
    expect(done).toEqual(["data-shop-1"]);
  });

  test("and are reported as they are, not as they were requested", () => {
    const live = liveOf([], { claims: [claim(0, "20Gi", "10Gi")] });
    expect(readVolumes(database, live, undefined)).toEqual({
      bound: true,
      capacityGb: 10,
      resizing: true,
    });
    expect(readVolumes(database, liveOf([]), undefined)).toMatchObject({
      bound: false,
      capacityGb: undefined,
    });
  });
});
