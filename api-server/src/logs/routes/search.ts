import * as analytics from "@slipway/analytics";
import { DEFAULT_LOG_DAYS, databaseTypes, logRetentionDays } from "@slipway/crds";
import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { whileConnected } from "../../http/exchange.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { wholeNumber } from "../../http/validate.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { decodeCursor, encodeCursor, MAX_PAGE_BYTES, pageOf, searchId, searchWindow } from "../search.ts";

const NO_LEVEL = "none";
const levelNames = [...analytics.LEVELS, NO_LEVEL] as const;

const moment = (about: string) =>
  z.iso.datetime({ offset: true, message: "must be ISO 8601 with a zone" }).describe(about);

const searchQuery = z
  .strictObject({
    q: z
      .string()
      .min(1)
      .max(256)
      .describe("Lines that contain this text; ASCII letters of either case are equal.")
      .optional(),
    level: z
      .string()
      .regex(
        new RegExp(`^(${levelNames.join("|")})(,(${levelNames.join("|")})){0,6}$`),
        `must be levels between commas: ${levelNames.join(", ")}`,
      )
      .describe("Lines of one of these levels, between commas; `none`: lines that state no level.")
      .optional(),
    instance: z
      .string()
      .min(1)
      .max(253)
      .describe("Name of one instance, also of one that is gone: only its lines.")
      .optional(),
    from: moment(
      "First moment of the window; an hour before `to` without it. One before the plan's days is where these begin.",
    ).optional(),
    to: moment("First moment after the window; now without it. At most a day ahead.").optional(),
    order: z.enum(["newest", "oldest"]).default("newest").describe("Which lines come first."),
    limit: wholeNumber(1, 200).default(100),
    cursor: z
      .string()
      .max(2_048)
      .refine((text) => decodeCursor(text) !== undefined, "must be a `next_cursor` of this operation")
      .describe(
        "`next_cursor` of an answer: the lines that follow, in the window of that answer. `q`, `level`, `instance` and `order` have to be those of it.",
      )
      .optional(),
  })
  .refine(({ cursor, from, to }) => cursor === undefined || (from ?? to) === undefined, {
    path: ["cursor"],
    message: "cursor and from, to exclude each other",
    when: () => true,
  });

/** The levels of a query; undefined: all. */
const levelsOf = (text: string | undefined): (analytics.Level | null)[] | undefined =>
  text?.split(",").map((name) => (name === NO_LEVEL ? null : (name as analytics.Level)));

const line = z.strictObject({
  timestamp: z.string().describe("RFC 3339 in UTC with nanoseconds."),
  instance: z.string(),
  container: z.string(),
  stream: z.enum(analytics.STREAMS),
  level: z.enum(analytics.LEVELS).nullable().describe("Null for a line that states none."),
  message: z.string(),
  continues: z
    .literal(true)
    .describe(
      "The line goes on in the next one of this instance and stream: long lines come in pieces of 16 KiB.",
    )
    .optional(),
});

const omitted = z
  .strictObject({
    lines: z.int().min(0).describe("Lines that were over the bounds of the project or its organization."),
    bytes: z.int().min(0),
    files: z
      .int()
      .min(0)
      .describe("Files that a node removed before they were read: their lines are unknown."),
  })
  .describe("What the window lacks, whatever the text and the level.");

const view = ({ at, instance, container, stream, level, text, continues }: analytics.FoundLine) => ({
  timestamp: analytics.timestamp(BigInt(at)),
  ...{ instance, container, stream, level, message: text },
  ...(continues ? { continues } : {}),
});

export const searchLogs = defineProjectRoute({
  operationId: "searchProjectLogs",
  method: "GET",
  path: "/v1/project/:id/logs/search",
  summary: "Search what the instances wrote",
  description:
    "Lines of an application or a database by text, level, instance and time, also of instances that are gone. They are kept for the plan's days " +
    `(${DEFAULT_LOG_DAYS} unless it says otherwise), and can be found a few seconds after they were written. A page has at most \`limit\` lines and ` +
    `${MAX_PAGE_BYTES / 1024} KiB of text as JSON; \`next_cursor\` is null on the last. \`omitted\` says what the window lacks. Logs of a job are those of its runs.`,
  tags: ["Projects"],
  query: searchQuery,
  responses: {
    200: {
      description: "One page of lines, and what the window lacks.",
      schema: success({
        data: z.array(line).max(200),
        from: z.string(),
        to: z.string(),
        next_cursor: z.string().nullable(),
        omitted,
      }),
    },
  },
  refusals: [400, 503],
  handler: async ({ project, query, request }, { analytics: queries, catalog, now }) => {
    requireType(project, ["http", "worker", ...databaseTypes]);
    const { organizationId: organization, id, resource } = project;
    const window = searchWindow(query, logRetentionDays(catalog.current, resource.spec.plan), now());
    const { q: text, instance, order, limit } = query;
    const cursor = decodeCursor(query.cursor ?? "");
    const search = searchId(id, query);
    if (cursor !== undefined && cursor.search !== search) {
      const message =
        "is of another search: q, level, instance and order have to be those of the page before";
      throw failures.validation([{ field: "cursor", message }]);
    }
    const about = { organization, project: id, window, instance };
    const lines = {
      ...about,
      ...{ text, order, levels: levelsOf(query.level), after: cursor?.after },
      ...{ limit: limit + 1, maxSize: MAX_PAGE_BYTES },
    };
    const [found, lacking] = await whileConnected(request, (signal) =>
      queries.search(organization, signal, async (store) => {
        // One after the other: the place is given back when neither runs any more.
        const first = await analytics.searchLogs(store, lines, signal);
        return [first, await analytics.omittedLogs(store, about, signal)] as const;
      }),
    );
    const { lines: shown, isLast } = pageOf(found, limit);
    const after = shown.at(-1);
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      body: {
        status: "success",
        data: shown.map(view),
        from: new Date(window.from).toISOString(),
        to: new Date(window.to).toISOString(),
        next_cursor: isLast || !after ? null : encodeCursor({ search, window, after }),
        omitted: lacking,
      },
    };
  },
});
