/** What tests of databases share. */

import { readFileSync } from "node:fs";
import {
  annotations,
  type Catalog,
  completeCredentials,
  labels,
  type Project,
  parseCatalog,
  projectSpec,
} from "@slipway/crds";
import type { Database } from "../../../operator/src/databases/database.ts";
import type { LiveDatabase, LivePod, LiveStatefulSet } from "../../../operator/src/databases/driver.ts";
import type {
  DatabaseImage,
  DatabasePlatform,
  OutsideType,
} from "../../../operator/src/databases/settings.ts";
import { toDatabase } from "../../../operator/src/databases/to-database.ts";

const file = new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url);

/** The chart's catalog. */
export const chartCatalog: Catalog = parseCatalog(readFileSync(file, "utf8"));

/** Passwords that name their use. */
export const exampleCredentials = completeCredentials(
  "postgresql",
  {
    password: "password-of-the-user",
    "superuser-password": "password-of-the-superuser",
    "replication-password": "password-of-the-replicas",
    "monitor-password": "password-of-the-monitor",
  },
  () => 0,
);

/** A golden case: a project, and what is not as usual about the platform and what is there already. */
export interface DatabaseCase {
  project: Project;
  features?: Record<string, boolean>;
  image?: Partial<DatabaseImage>;
  outside?: { type: OutsideType; host?: string };
  /** Version of what templates are made from. */
  templateVersion?: number;
  /** Pods that are there and may not be stopped yet. */
  replicas?: number;
  /** What the StatefulSet's claims were made from. */
  claims?: { size: string; storageClass?: string };
}

/** The database of a case. @throws when the project is not valid or its plan not in the chart's catalog */
export function databaseOf({
  project,
  features,
  image,
  outside,
  templateVersion,
  replicas,
  claims,
}: DatabaseCase): Database {
  projectSpec.parse(project.spec);
  const plan = chartCatalog.databasePlans.find((one) => one.plan === project.spec.plan);
  if (!plan) {
    throw new Error(`no plan ${project.spec.plan}`);
  }
  const { type, version = "" } = project.spec;
  const used: DatabaseImage = {
    image: `registry.example/${type}@sha256:${"a".repeat(64)}`,
    uid: 100,
    gid: 102,
    features: features ?? {},
    ...image,
  };
  const platform: DatabasePlatform = {
    outside: outside ?? { type: "NodePort", host: "192.0.2.1" },
    planChangeMs: 600_000,
    previousPasswordMs: 86_400_000,
    volumeGraceMs: 86_400_000,
    apiserver: () => [{ cidrs: ["10.96.0.1/32", "192.0.2.1/32"], ports: [443, 6443] }],
    systemNamespace: "slipway-system",
    templateVersion,
    images: () => ({ [type]: { [version]: used } }),
  };
  const statefulSet: LiveStatefulSet | undefined = claims && {
    spec: {
      volumeClaimTemplates: [
        {
          spec: {
            storageClassName: claims.storageClass,
            resources: { requests: { storage: claims.size } },
          },
        },
      ],
    },
  };
  const accepted = { organizationId: "alpha", plan };
  const database = toDatabase(project, accepted, {
    catalog: chartCatalog,
    platform,
    credentials: exampleCredentials,
    live: { statefulSet, pods: [], claims: [] },
  });
  return replicas === undefined
    ? database
    : { ...database, replicas, members: Math.max(replicas, database.instances) };
}

/** What a pod of a database is like, for tests of its observers. */
export interface PodShape {
  role?: "primary" | "replica";
  ready?: boolean;
  /** Made from the StatefulSet's current template. */
  current?: boolean;
  deleting?: boolean;
  startedAt?: string;
}

/** Hash of the template that a live StatefulSet has in tests. */
export const TEMPLATE = "now";

/** A pod of the database `shop`. */
export function podOf(ordinal: number, shape: PodShape = {}): LivePod {
  const { role, ready = true, current = true, deleting = false } = shape;
  const { startedAt = "2026-01-01T00:00:00Z" } = shape;
  return {
    metadata: {
      name: `shop-${ordinal}`,
      namespace: "slipway-org-alpha",
      uid: `uid-${ordinal}`,
      labels: role ? { [labels.role]: role } : {},
      annotations: { [annotations.settingsHash]: current ? TEMPLATE : "before" },
      ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
      containerStatuses: [{ name: "database", ready, state: { running: { startedAt } } }],
    },
  };
}

/** A live database of these pods. */
export function liveOf(pods: readonly LivePod[], more: Partial<LiveDatabase> = {}): LiveDatabase {
  const template = { metadata: { annotations: { [annotations.settingsHash]: TEMPLATE } } };
  return {
    statefulSet: { spec: { replicas: pods.length, template } },
    pods,
    claims: [],
    ...more,
  };
}

/** A PostgreSQL project on the plan db-premium. */
export function exampleDatabase(spec: Partial<Project["spec"]> = {}): Project {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: "shop", namespace: "slipway-org-alpha", uid: "2f1c", generation: 1 },
    spec: {
      type: "postgresql",
      name: "shop-data",
      plan: "db-premium",
      paymentMode: "hourly",
      version: "17",
      instances: 1,
      storage: { persistent: true, capacity: 10 },
      networkAccess: { ingressWhiteList: [{ cidr: "0.0.0.0/0" }] },
      ...spec,
    },
  };
}
