import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import { defineRoute } from "../http/route.ts";
import type { Answer } from "../http/types.ts";
import { consoleFiles } from "./files.ts";

/**
 * Only what is served here, no script or style inside the page, and no way for a text to become markup at all. It shows logs and
 * names that any user may have written.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const HEADERS = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};
const FOR_GOOD = "public, max-age=31536000, immutable";

/** The page names the version of its files, so that browsers revalidate it every time. */
function answerPage(ifNoneMatch: string | undefined): Answer {
  const { page } = consoleFiles();
  return answer(page.etag, "no-cache", ifNoneMatch, page);
}

/**
 * A file under a version. While the API server is rolled out, a page of one version may call a replica of the other: it gets what
 * there is, and keeps nothing of it.
 */
function answerFile(path: string, ifNoneMatch: string | undefined): Answer {
  const { version, files } = consoleFiles();
  const [, asked, name = ""] = /^([0-9a-f]{16})\/(.+)$/.exec(path) ?? [];
  const file = files.get(name);
  if (asked === undefined || file === undefined) {
    throw failures.routeNotFound();
  }
  return asked === version
    ? answer(`"${version}"`, FOR_GOOD, ifNoneMatch, file)
    : answer(undefined, "no-store", undefined, file);
}

function answer(
  etag: string | undefined,
  cacheControl: string,
  ifNoneMatch: string | undefined,
  { type, content }: { type: string; content: Buffer },
): Answer {
  const headers = {
    ...HEADERS,
    "content-type": type,
    "cache-control": cacheControl,
    ...(etag === undefined ? {} : { etag }),
  };
  const isKnown = etag !== undefined && names(ifNoneMatch, etag);
  return isKnown ? { status: 304, content: "", headers } : { status: 200, content, headers };
}

/** Whether an `If-None-Match` names the tag; weakly, as it is compared. */
function names(ifNoneMatch: string | undefined, etag: string): boolean {
  const given = (ifNoneMatch ?? "").split(",").map((one) => one.trim().replace(/^W\//, ""));
  return given.includes(etag) || given.includes("*");
}

const responses = { 200: { description: "The page, or a file of it.", schema: z.unknown() } };

export const readConsole = defineRoute({
  operationId: "readConsole",
  method: "GET",
  path: "/console",
  summary: "Read the console",
  tags: ["API"],
  undocumented: true,
  responses,
  handler: ({ request }) => answerPage(request.headers["if-none-match"]),
});

export const readConsoleFile = defineRoute({
  operationId: "readConsoleFile",
  method: "GET",
  path: "/console/*",
  summary: "Read a file of the console",
  tags: ["API"],
  undocumented: true,
  responses,
  handler: ({ request, params }) => {
    const { "*": path } = params as { "*": string };
    const ifNoneMatch = request.headers["if-none-match"];
    return path === "" ? answerPage(ifNoneMatch) : answerFile(path, ifNoneMatch);
  },
});
