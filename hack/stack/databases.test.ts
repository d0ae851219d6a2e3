import { expect, test } from "vitest";
import type { Cluster } from "../cluster/cluster.ts";
import { databaseImages } from "../images/databases.ts";
import { imageKey } from "./database-choice.ts";
import { expectedDatabases, planDatabases } from "./databases.ts";

/** A cluster that has this ConfigMap, or none. */
function clusterWith(images: string | undefined): Cluster {
  const answer = images === undefined ? "" : JSON.stringify({ data: { "images.yaml": images } });
  return { kubectl: async () => answer } as unknown as Cluster;
}

test.each([
  ["no platform yet", undefined, true, ["postgresql:18"]],
  ["a platform without databases", "{}\n", true, ["postgresql:18"]],
  [
    "one that offers some",
    'mariadb:\n  "10": { image: a, uid: 1, gid: 1 }\n',
    false,
    ["postgresql:18", "mariadb:10"],
  ],
] as const)("%s", async (_, images, first, keys) => {
  const plan = await planDatabases(clusterWith(images), ["postgresql:18"], databaseImages("all"));
  expect(plan.first).toBe(first);
  expect(plan.wanted.map(imageKey)).toEqual(keys);
});

test("the chart gets references, users and the real engine before anything is built", async () => {
  const { wanted } = await planDatabases(
    clusterWith(undefined),
    ["postgresql:18", "clickhouse:26.8.6.5"],
    databaseImages("all"),
  );
  expect(await expectedDatabases(wanted)).toEqual({
    postgresql: {
      "18": { image: expect.stringMatching(/^slipway\.local\/slipway\/postgresql:18-/), uid: 999, gid: 999 },
    },
    clickhouse: {
      "26.8.6.5": {
        image: expect.any(String),
        uid: expect.any(Number),
        gid: expect.any(Number),
        engine: "chdb",
        features: { replication: false },
      },
    },
  });
});
