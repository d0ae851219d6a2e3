import { canonicalAddress, type Filter, MAX_PATH_BYTES, RETENTION_DAYS } from "@slipway/analytics";
import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { wholeNumber } from "../../http/validate.ts";
import type { RequestedWindow } from "../analytics.ts";

const RANGES = ["300", "3600", "21600", "86400", "604800"] as const;
/** Seconds of the window when the query has none. */
export const DEFAULT_RANGE_SECONDS = 3600;
const RETENTION_MS = RETENTION_DAYS * 86_400_000;

const moment = (about: string) =>
  z.iso.datetime({ offset: true, message: "must be ISO 8601 with a zone" }).describe(about);

/** Parameters of all six operations. */
export const networkQuery = z
  .strictObject({
    range_seconds: z
      .enum(RANGES)
      .describe(`Seconds of the window, which ends now; ${DEFAULT_RANGE_SECONDS} without from.`)
      .optional(),
    from: moment(`First moment of the window, at most ${RETENTION_DAYS} days ago.`).optional(),
    to: moment("First moment after the window; now without it. Needs from.").optional(),
    status_code: z
      .string()
      .regex(/^[1-5][0-9]{2}$/, "must be an HTTP status")
      .describe("Requests that were answered with this status.")
      .optional(),
    status_class: z.enum(["2xx", "3xx", "4xx", "5xx"]).optional(),
    source_ip: z
      .union([z.ipv4(), z.ipv6()], "must be an IP address")
      .describe("Requests of this client.")
      .optional(),
    path: z
      .string()
      .min(1)
      .max(MAX_PATH_BYTES)
      .describe("Requests for this path, without its query, or of this route.")
      .optional(),
    page: wholeNumber(1, 2 ** 31 - 1).default(1),
    limit: wholeNumber(1, 50).default(5),
  })
  .refine(({ range_seconds, from, to }) => range_seconds === undefined || (from ?? to) === undefined, {
    path: ["range_seconds"],
    message: "range_seconds and from, to exclude each other",
    when: () => true,
  })
  .refine(({ from, to }) => to === undefined || from !== undefined, {
    path: ["from"],
    message: "from is required with to",
    when: () => true,
  })
  .refine(({ from, to }) => !(Date.parse(from ?? "") >= Date.parse(to ?? "")), {
    path: ["from"],
    message: "from must be before to",
    when: () => true,
  });

export type NetworkQuery = z.output<typeof networkQuery>;

/**
 * The requested window. One without an end is a range: it ends now.
 * @throws Failure 400 for one that begins before the retention, is too long, or is in the future
 */
export function requestedWindow({ range_seconds, from, to }: NetworkQuery, now: Date): RequestedWindow {
  if (from === undefined) {
    return { rangeMs: Number(range_seconds ?? DEFAULT_RANGE_SECONDS) * 1000 };
  }
  const window = { from: Date.parse(from), to: to === undefined ? now.getTime() : Date.parse(to) };
  const refuse = (field: string, message: string) => failures.validation([{ field, message }]);
  if (window.from < now.getTime() - RETENTION_MS) {
    throw refuse("from", `must be at most ${RETENTION_DAYS} days ago: that is how long requests are kept`);
  }
  if (window.to - window.from > RETENTION_MS) {
    throw refuse("to", `must be at most ${RETENTION_DAYS} days after from`);
  }
  if (window.from >= now.getTime()) {
    throw refuse("from", "must not lie ahead");
  }
  if (window.from >= window.to) {
    throw refuse("from", "must be before to");
  }
  return window;
}

/** What leaves out requests. */
export function filterOf({ status_code, status_class, source_ip, path }: NetworkQuery): Filter {
  return {
    statusCode: status_code === undefined ? undefined : Number(status_code),
    statusClass: status_class === undefined ? undefined : Number(status_class[0]),
    sourceIp: source_ip === undefined ? undefined : canonicalAddress(source_ip),
    path,
  };
}
