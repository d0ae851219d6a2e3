/** What lives through the compressed hours of `compressed-hour.integration.test.ts`. */

import { type BillableState, type PriceList, type Project, priceListOf } from "@slipway/crds";
import { chartCatalog, exampleDatabase } from "../kit/databases/examples.ts";
import { exampleProject, exampleWorker } from "../kit/operator/projects.ts";

export const namespace = "slipway-org-alpha";

const image = { uid: 100, gid: 102 };
/** Images that nothing runs. */
export const databaseImages = {
  postgresql: { "17": { ...image, image: "registry.example/postgresql:17" } },
  mariadb: { "11": { ...image, image: "registry.example/mariadb:11" } },
  clickhouse: { "26.8.6.5": { ...image, image: "registry.example/clickhouse:26" } },
  valkey: { "9.1.1": { ...image, image: "registry.example/valkey:9" } },
};

/** Prices of long ago, and the catalog's from an instant on. */
export function pricesUntil(at: number): PriceList[] {
  const catalog = priceListOf(chartCatalog, at);
  const { basic, ...others } = catalog.plans;
  const before = {
    ...catalog,
    from: at - 90 * 24 * 3_600_000,
    gbHour: "0.0701",
    resources: { buildMinute: "0.033" },
    plans: { ...others, ...(basic && { basic: { ...basic, hourly: "2.345678901" } }) },
  };
  return [before, catalog];
}

export const ref = (name: string) => ({ namespace, name });
const database = (name: string, spec: Partial<Project["spec"]>): Project => ({
  ...exampleDatabase(spec),
  metadata: ref(name),
});
export const volume = (capacity: number) =>
  ({ persistent: true, capacity, dirPathToPersist: "/data" }) as const;

export const STATE: BillableState = {
  plan: "basic",
  paymentMode: "hourly",
  renews: true,
  instances: 1,
  paused: false,
  billedGb: 0,
};

/** Projects of every kind that has a plan, and what is billed of them first. */
export const projects: Record<string, [project: Project, first: BillableState]> = {
  shop: [exampleProject(ref("shop")), STATE],
  worker: [exampleWorker(ref("worker"), { storage: volume(2) }), { ...STATE, billedGb: 2 }],
  contract: [
    exampleProject(ref("contract"), { paymentMode: "monthly" }),
    { ...STATE, paymentMode: "monthly" },
  ],
  gone: [exampleProject(ref("gone"), { plan: "premium" }), { ...STATE, plan: "premium" }],
  // Of a database the capacity beyond the one GB that its plan includes, for each instance.
  pg: [
    database("pg", { plan: "db-basic", storage: { persistent: true, capacity: 10 } }),
    { ...STATE, plan: "db-basic", billedGb: 9 },
  ],
  maria: [
    database("maria", { type: "mariadb", version: "11", plan: "db-basic", instances: 3 }),
    { ...STATE, plan: "db-basic", instances: 3, billedGb: 27 },
  ],
  clicks: [
    database("clicks", {
      ...{ type: "clickhouse", version: "26.8.6.5", plan: "analytics-basic" },
      storage: { persistent: true, capacity: 20 },
    }),
    { ...STATE, plan: "analytics-basic", billedGb: 19 },
  ],
  cache: [
    database("cache", {
      ...{ type: "valkey", version: "9.1.1", plan: "db-basic", profile: "key_value", instances: undefined },
      storage: { persistent: true, capacity: 5 },
    }),
    { ...STATE, plan: "db-basic", billedGb: 4 },
  ],
};

/** A build of 191 seconds. */
export const buildOf = (projectUid: string, began: number) => ({
  ...{ organization_id: "alpha", project_id: "shop", project_uid: projectUid, id: "b1" },
  ...{ triggered_by: "manual" as const, branch: null, tag: null, commit_sha: null, commit_message: null },
  ...{ status: "success" as const, digest: null, error_code: null, error_message: null },
  created_at: new Date(began - 60_000),
  started_at: new Date(began - 50_000),
  ran_from: new Date(began - 40_000),
  ran_until: new Date(began + 151_000),
  finished_at: new Date(began + 160_000),
});
