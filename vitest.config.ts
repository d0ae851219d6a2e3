import { defineConfig } from "vitest/config";
import { LongestFirst } from "./hack/testing/longest-first.ts";

const rooms = "{crds,operator,api-server,builder,collector,recovery,packages,cli,hack,test}";

const e2eFiles = (...names: string[]): string[] => names.map((name) => `test/e2e/${name}.e2e.test.ts`);

/** They run what is in the files of an image, which are mounted and belong to accounts of the image: only root may. */
const needRoot = [
  "api-server/src/analytics/network",
  "api-server/src/logs/search",
  "api-server/src/metrics/history",
  "api-server/src/rate-limit/valkey",
  "api-server/src/replicas",
  "collector/src/drains/drains",
  "collector/src/full-buffer",
  "collector/src/instance-samples",
  "collector/src/project-logs",
  "hack/cluster/kind/node-image",
  "hack/images/clickhouse",
  "hack/images/databases",
  "hack/images/images",
  "hack/releases/bundle/image-materials",
  "operator/src/databases/clickhouse/server",
  "operator/src/databases/mariadb/group",
  "operator/src/databases/valkey/servers",
  "packages/analytics/src/store/metrics",
  "packages/analytics/src/store/log-drains",
  "packages/analytics/src/store/schema",
  "packages/analytics/src/store/store",
].map((name) => `${name}.integration.test.ts`);

/**
 * Real servers, images and builds, and no kube-apiserver: none minds how long it waits for a processor. Groups of members do, by the
 * limits of production: a connection within 3 s, a member's answer within 6.
 */
const servers = [
  "builder/**",
  "hack/images",
  "operator/src/databases/{clickhouse,postgresql}",
  "operator/src/backups/engines",
  "packages/analytics/**",
].map((folder) => `${folder}/*.integration.test.ts`);

/** How long a condition is waited for that comes about by itself, on a busy machine. */
const expectations = { poll: { timeout: 30_000 } };

/** What both kinds of integration tests have in common. */
const integration = {
  testTimeout: 240_000,
  hookTimeout: 300_000,
  expect: expectations,
  // As for unit tests.
  isolate: false,
  globalSetup: "test/kit/temporary-folder.ts",
};

const withoutRoot = process.getuid?.() === 0 ? [] : needRoot;
if (withoutRoot.length > 0) {
  console.warn(
    `Left out without root, which they need to mount an image's files:\n  ${withoutRoot.join("\n  ")}`,
  );
}

/**
 * They replace the operator while they use it, or stop what no other of them uses, and none minds that another does. What excludes
 * one another takes locks: see test/e2e/support/exclusive.ts.
 */
const operatorReplaced = e2eFiles(
  "jobs-failover",
  "backups-faults",
  "builds-engines",
  "builds-faults",
  "operator-failover",
  "pre-deploy",
  "analytics-faults",
  "logs-search",
  "metrics-history",
  "backups-s3",
);

/** hack/test.sh sets it by the time that the unit tests take: more files would only wait for a processor. */
const isSlow = process.env.SLIPWAY_TEST_SLOW === "1";
const integrationWorkers = isSlow ? 3 : 4;
const e2eWorkers = isSlow ? 3 : 5;

/** They stop a part of the platform that all others need, give the operator other settings, watch that it rests, or need its processors. */
const wholeStack = [
  ...e2eFiles(
    // Its browsers draw eighteen pages side by side, for which two processors are just enough.
    "console",
    "replicas",
    "killed-processes",
    "billing-hour",
    "unchanged",
    "tracing",
    "applications-health",
    "references-renewal",
    "helm-test",
    "helm-oci",
  ),
  "test/chaos/databases/apiserver.chaos.test.ts",
];

/** On a stack of three nodes: see hack/testing/kind.ts. */
const severalNodes = e2eFiles("nodes", "nodes-databases");

export default defineConfig({
  test: {
    // The messages of failed tests hold whole answers: of one that fails rarely they may be the only trace.
    chaiConfig: { truncateThreshold: 1_000 },
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: "unit",
          include: [`${rooms}/**/*.test.ts`],
          exclude: [
            "**/node_modules/**",
            "**/*.integration.test.ts",
            "**/*.e2e.test.ts",
            "**/*.chaos.test.ts",
          ],
          // A worker loads every module once, for all of its files: most of the time of unit tests went there.
          isolate: false,
          globalSetup: "test/kit/temporary-folder.ts",
          // Half of the time of each worker is waiting.
          maxWorkers: 4,
          // Some compute for seconds, which is longer on a busy machine.
          testTimeout: 90_000,
          hookTimeout: 60_000,
          expect: expectations,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // Needs the cluster binaries (hack/up.sh builds them) and PostgreSQL's tools.
        test: {
          ...integration,
          name: "integration",
          include: [`${rooms}/**/*.integration.test.ts`],
          exclude: ["**/node_modules/**", ...withoutRoot, ...servers],
          // Most of a file's time is waiting for its servers: others use that time.
          maxWorkers: integrationWorkers,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...integration,
          name: "servers",
          // Builds from nothing, on a slow machine.
          testTimeout: 600_000,
          hookTimeout: 600_000,
          include: servers,
          exclude: ["**/node_modules/**", ...withoutRoot],
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // Operators that are killed and cut off, on clusters of their own: see test/chaos/README.md. Two files at a time would leave a
        // third of two processors unused.
        test: {
          name: "chaos",
          include: ["test/chaos/*.chaos.test.ts"],
          exclude: ["**/node_modules/**"],
          testTimeout: 280_000,
          hookTimeout: 400_000,
          expect: expectations,
          maxWorkers: 3,
          sequence: { groupOrder: 3 },
        },
      },
      {
        // Needs a running stack: reads .slipway/stack.env. Most of it waits, for minutes to pass or pods to start.
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.e2e.test.ts", "test/chaos/databases/*.chaos.test.ts"],
          exclude: ["**/node_modules/**", ...operatorReplaced, ...wholeStack, ...severalNodes],
          isolate: false,
          testTimeout: 400_000,
          hookTimeout: 400_000,
          maxWorkers: e2eWorkers,
          // Tests of a file that ask for it live through the same minutes, all of them.
          maxConcurrency: 20,
          sequence: { groupOrder: 4 },
        },
      },
      {
        test: {
          name: "e2e-operators",
          include: operatorReplaced,
          exclude: ["**/node_modules/**"],
          isolate: false,
          testTimeout: 400_000,
          hookTimeout: 400_000,
          maxWorkers: e2eWorkers,
          sequence: { groupOrder: 5 },
        },
      },
      {
        // The same, one file after the other: they kill the platform's own processes, or watch that it rests.
        test: {
          name: "e2e-alone",
          include: wholeStack,
          exclude: ["**/node_modules/**"],
          isolate: false,
          testTimeout: 400_000,
          hookTimeout: 400_000,
          fileParallelism: false,
          sequence: { groupOrder: 6 },
        },
      },
      {
        test: {
          name: "e2e-nodes",
          include: severalNodes,
          exclude: ["**/node_modules/**"],
          testTimeout: 400_000,
          hookTimeout: 400_000,
          sequence: { groupOrder: 7 },
        },
      },
    ],
  },
});
