/** The stages of `hack/test.sh --cluster kind`: end to end on one node of kind, then on three. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "../lib/paths.ts";
import { single, up, vitest } from "./runners.ts";
import type { Stage } from "./stage.ts";

const builds = "builds need the embedded cluster's Git server and registry";

/** Files of `test/e2e` that do not run on one node of kind, with what they need, by what they read and connect to. */
export const notOnKind: Readonly<Record<string, string>> = {
  alerts: "needs kubelets whose certificates are verified: the nodes' sign their own",
  "backups-faults": "reads the backups' volume as a folder of this machine",
  "backups-s3": "reads the backups' volume as a folder of this machine",
  backups: "reads the backups' volume as a folder of this machine",
  "builds-engines": builds,
  "builds-failures": builds,
  "builds-faults": builds,
  "builds-hostile": builds,
  "builds-image": builds,
  "builds-runtimes": builds,
  builds: builds,
  console: builds,
  "databases-access": "connects from a network namespace to the embedded cluster's node address",
  exec: builds,
  "metrics-history": "needs kubelets whose certificates are verified: the nodes' sign their own",
  nodes: "needs three nodes: the stage e2e-nodes",
  "nodes-databases": "needs three nodes: the stage e2e-nodes",
  readme: builds,
  tracing: "reads the audit log of the embedded cluster's kube-apiserver",
  unchanged: "reads the audit log of the embedded cluster's kube-apiserver",
};

/** Files of `test/e2e`, by the names that `notOnKind` uses. */
export const e2eNames = (): string[] =>
  readdirSync(join(root, "test/e2e"))
    .filter((name) => name.endsWith(".e2e.test.ts"))
    .map((name) => name.slice(0, -".e2e.test.ts".length))
    .sort();

const fileOf = (name: string): string => `test/e2e/${name}.e2e.test.ts`;

/** Files that run on one node of kind. */
export const onKind = (): string[] =>
  e2eNames()
    .filter((name) => !(name in notOnKind))
    .map(fileOf);

export const kindStages: Readonly<Record<string, Stage>> = {
  up: { about: "a stack of one node comes up", run: () => up("up", ["--cluster", "kind"]) },
  e2e: {
    about: "end to end, but for what needs the embedded cluster",
    run: () => {
      const left = Object.entries(notOnKind).map(([name, why]) => `  ${fileOf(name)}: ${why}`);
      console.log(`Not on one node of kind:\n${left.join("\n")}`);
      // The node's control plane has a part of the processors that the embedded cluster leaves to projects.
      process.env.SLIPWAY_TEST_SLOW ??= "1";
      return vitest("e2e", { projects: ["e2e", "e2e-operators", "e2e-alone"], files: onKind() });
    },
  },
  down: { about: "the stack is removed", run: () => single("down-kind", "hack/down.sh", ["--purge"]) },
  "up-nodes": {
    about: "a stack of three nodes comes up",
    run: () => up("up-nodes", ["--cluster", "kind", "--nodes", "3"]),
  },
  "e2e-nodes": {
    about: "spread, isolation, drain, volumes that do not move, and failover over nodes",
    run: () => vitest("e2e-nodes", { projects: ["e2e-nodes"] }),
  },
};
