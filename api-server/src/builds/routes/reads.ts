import { setTimeout as sleep } from "node:timers/promises";
import type { Build, BuildLogChunk } from "@slipway/ledger";
import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { type EventSource, eventAnswer, eventText } from "../../http/event-streams.ts";
import { defineProjectRoute } from "../../http/route.ts";
import type { OperationId } from "../../policy/table.ts";
import { type ApiProject, applicationTypes, requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import type { Services } from "../../services.ts";
import {
  buildPagination,
  buildSchema,
  buildView,
  chunkView,
  isFinished,
  listQuery,
  logQuery,
  logSchema,
  logView,
} from "../view.ts";

/** A build's log as it is written, as events. */

/** What a stream is fed from. */
export interface LogFeed {
  /** The current build; undefined when it is deleted. */
  build(): Promise<Pick<Build, "status" | "log_truncated"> | undefined>;
  lines(cursor: number): Promise<BuildLogChunk[]>;
}

/** How often a build is read. */
const POLL_INTERVAL_MS = 500;

/**
 * Events `log` with a line each and its sequence as id, and `end` with the status once the build has ended and all was sent. A
 * stream that ends without `end` is to be resumed.
 */
export const buildLogEvents = (feed: LogFeed, from: number, pollIntervalMs = POLL_INTERVAL_MS): EventSource =>
  async function* events(signal) {
    let cursor = from;
    yield ": log\n\n";
    try {
      while (!signal.aborted) {
        // Before the lines: of a build that has ended all of them are in the ledger.
        const build = await feed.build();
        if (build === undefined) {
          return;
        }
        const lines = await feed.lines(cursor);
        for (const line of lines) {
          yield eventText("log", chunkView(line), line.sequence);
          cursor = line.sequence;
        }
        if (lines.length > 0) {
          continue;
        }
        if (isFinished(build.status)) {
          const { status, log_truncated: truncated } = build;
          yield eventText("end", { status, next_cursor: cursor, truncated });
          return;
        }
        await sleep(pollIntervalMs, undefined, { signal });
      }
    } catch {
      // The client has disconnected, or the ledger is unavailable: without `end` the client resumes after the last id.
    }
  };

/** What is read of builds: the same under both families of paths, which differ in their limits. */

type Of = Pick<Services, "builds">;

/** How the ledger names a project. */
function ledgerName({ organizationId, id, resource }: ApiProject) {
  return { organizationId, projectId: id, projectUid: resource.metadata.uid ?? "" };
}

/** @throws Failure 404, 503 */
async function findBuild(project: ApiProject, params: unknown, { builds }: Of) {
  const { buildId } = params as { buildId: string };
  const found = await builds.store.find({ ...ledgerName(project), id: buildId });
  if (found === undefined) {
    throw failures.buildNotFound(buildId);
  }
  return found;
}

const listRoute = (operationId: OperationId, path: `/${string}`) =>
  defineProjectRoute({
    operationId,
    method: "GET",
    path,
    summary: "List builds",
    description: "The newest first; at most 30 are kept, for 30 days.",
    tags: ["Builds"],
    query: listQuery,
    responses: {
      200: {
        description: "One page of builds.",
        schema: success({ data: z.array(buildSchema), pagination: buildPagination }),
      },
    },
    handler: async ({ project, query }, services) => {
      requireType(project, applicationTypes);
      const { page, limit, branch, status } = query;
      const { total, builds } = await services.builds.store.list({
        ...ledgerName(project),
        ...(branch === undefined ? {} : { branch }),
        ...(status === undefined ? {} : { status }),
        // Far after the last one, and still a number that every database accepts.
        offset: Math.min((page - 1) * limit, 1_000_000_000),
        limit,
      });
      const body = { status: "success", data: builds.map(buildView), pagination: { total, page, limit } };
      return { status: 200, body };
    },
  });

const readRoute = (operationId: OperationId, path: `/${string}`) =>
  defineProjectRoute({
    operationId,
    method: "GET",
    path,
    summary: "Read a build",
    tags: ["Builds"],
    responses: { 200: { description: "The build.", schema: success({ data: buildSchema }) } },
    handler: async ({ project, params }, services) => {
      const data = buildView(await findBuild(project, params, services));
      return { status: 200, body: { status: "success", data } };
    },
  });

const logRoute = (operationId: OperationId, path: `/${string}`) =>
  defineProjectRoute({
    operationId,
    method: "GET",
    path,
    summary: "Read a build's log",
    description:
      "The lines after `cursor`. With `Accept: text/event-stream` the lines come as they are written: events `log`, whose id is " +
      "the sequence, and `end` once the build has ended; `Last-Event-ID` goes on after a line.",
    tags: ["Builds"],
    query: logQuery,
    responses: { 200: { description: "Lines of the log.", schema: success({ data: logSchema }) } },
    handler: async ({ project: of, params, query, request, recheck }, services) => {
      const build = await findBuild(of, params, services);
      const { store, streams } = services.builds;
      const key = { ...ledgerName(of), id: build.id };
      if (request.method === "GET" && wantsEvents(request.headers.accept)) {
        const last = /^[0-9]{1,15}$/.exec(String(request.headers["last-event-id"] ?? ""))?.[0];
        const feed = {
          build: () => store.find(key),
          lines: (cursor: number) => store.readLog(key, { cursor, limit: query.limit }),
        };
        const from = last === undefined ? query.cursor : Number(last);
        const caller = { organizationId: of.organizationId, recheck };
        return eventAnswer(streams.open(caller, buildLogEvents(feed, from)));
      }
      const lines = await store.readLog(key, query);
      const data = logView(build, lines, query.cursor);
      return { status: 200, headers: NOT_KEPT, body: { status: "success", data } };
    },
  });

const NOT_KEPT = { "cache-control": "no-store" };

const wantsEvents = (accept: string | undefined): boolean =>
  (accept ?? "").split(",").some((type) => /^\s*text\/event-stream\s*(;|$)/i.test(type));

export const listBuilds = listRoute("listBuilds", "/v1/project/:id/builds");
export const readBuild = readRoute("readBuild", "/v1/project/:id/builds/:buildId");
export const readBuildLogs = logRoute("readBuildLogs", "/v1/project/:id/builds/:buildId/logs");

/** The same under the older paths, which have limits of their own. */
export const listGithubBuilds = listRoute("listGithubBuilds", "/v1/project/:id/github/builds");
export const readGithubBuild = readRoute("readGithubBuild", "/v1/project/:id/github/builds/:buildId");
export const readGithubBuildLogs = logRoute(
  "readGithubBuildLogs",
  "/v1/project/:id/github/builds/:buildId/logs",
);
