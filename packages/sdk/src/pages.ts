import type { Slipway } from "./client.ts";
import type { operations } from "./generated/openapi.ts";

/** Lists that the API answers by the page, as one sequence each: the next page is read once it is needed. */

type Query<Id extends keyof operations> = Omit<
  NonNullable<operations[Id]["parameters"]["query"]>,
  "page" | "limit"
>;

/** A page, and how many items there are on all pages. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly total: number;
}

/**
 * Every item of all pages. A list that changes meanwhile may show an item twice or leave one out, as the pages do.
 * @param read the page of this number, from 1
 */
export async function* eachItem<Item>(
  read: (page: number) => Promise<Page<Item>>,
): AsyncGenerator<Item, void> {
  let seen = 0;
  for (let page = 1; ; page += 1) {
    const { items, total } = await read(page);
    yield* items;
    seen += items.length;
    if (items.length === 0 || seen >= total) {
      return;
    }
  }
}

/** Projects that the credential may read, those changed last first. */
export const eachProject = (slipway: Slipway, query: Query<"listProjects"> = {}) =>
  eachItem(async (page) => {
    const { data } = await slipway.GET("/v1/project", { params: { query: { ...query, page, limit: 50 } } });
    return { items: data.projects, total: data.pagination.total };
  });

/** Builds of a project, the newest first. */
export const eachBuild = (slipway: Slipway, id: string, query: Query<"listBuilds"> = {}) =>
  eachItem(async (page) => {
    const params = { path: { id }, query: { ...query, page, limit: 50 } };
    const { data, pagination } = await slipway.GET("/v1/project/{id}/builds", { params });
    return { items: data, total: pagination.total };
  });

/** Deployments of a project in this month, the newest first. */
export const eachDeployment = (slipway: Slipway, id: string) =>
  eachItem(async (page) => {
    const params = { path: { id }, query: { page, limit: 1_000 } };
    const { data, pagination } = await slipway.GET("/v1/project/{id}/historic/deployments", { params });
    return { items: data, total: pagination.total };
  });

/** Runs of a job in this billing cycle, the newest first. */
export const eachJobRun = (slipway: Slipway, id: string, query: Query<"listJobRuns"> = {}) =>
  eachItem(async (page) => {
    const params = { path: { id }, query: { ...query, page } };
    const { data } = await slipway.GET("/v1/project/{id}/job-runs", { params });
    return { items: data.runs, total: data.pagination.total };
  });

/** One-off runs of a project in this billing cycle, the newest first. */
export const eachRun = (slipway: Slipway, id: string, query: Query<"listRuns"> = {}) =>
  eachItem(async (page) => {
    const params = { path: { id }, query: { ...query, page } };
    const { data } = await slipway.GET("/v1/project/{id}/runs", { params });
    return { items: data.runs, total: data.pagination.total };
  });

/** Backups of a database, the newest first. */
export const eachBackup = (slipway: Slipway, id: string) =>
  eachItem(async (page) => {
    const { data } = await slipway.GET("/v1/project/{id}/backups", {
      params: { path: { id }, query: { page } },
    });
    return { items: data.backups, total: data.pagination.total };
  });

/** Invoices of the organization, the newest first. */
export const eachInvoice = (slipway: Slipway) =>
  eachItem(async (page) => {
    const { data } = await slipway.GET("/v1/organization/invoices", { params: { query: { page } } });
    return { items: data.invoices, total: data.pagination.total };
  });
