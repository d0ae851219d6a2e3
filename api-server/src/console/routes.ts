import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { alertMetrics, eventTypes, isMeasured, typesOfAlertMetric } from "@slipway/crds";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import type { Answer } from "../http/exchange.ts";
import { defineRoute } from "../http/route.ts";
import { STYLE_SOURCE } from "../invoices/html.ts";

/** Serves the web console: its page, and its modules with their types stripped. */

/** One file of the console, as a browser gets it. */
export interface ConsoleFile {
  type: string;
  content: Buffer;
}

/** All files of the console, in memory. */
export interface ConsoleFiles {
  /** Hash of all files. It is part of their URLs, so that a browser caches them forever. */
  version: string;
  page: ConsoleFile & { etag: string };
  /** By their path below `api-server/console`. */
  files: ReadonlyMap<string, ConsoleFile>;
}

const FOLDER = join(import.meta.dirname, "../../console");
/** What a browser is given. Tests and settings are not. */
const TYPES: readonly (readonly [RegExp, string])[] = [
  [/(?<!\.test)\.ts$/, "text/javascript; charset=utf-8"],
  [/\.css$/, "text/css; charset=utf-8"],
  [/\.svg$/, "image/svg+xml"],
];

let loaded: ConsoleFiles | undefined;

/** Reads the files at the first request. */
export function consoleFiles(): ConsoleFiles {
  loaded ??= load();
  return loaded;
}

function load(): ConsoleFiles {
  const files = new Map<string, ConsoleFile>();
  for (const path of readdirSync(FOLDER, { recursive: true, encoding: "utf8" }).sort()) {
    const type = TYPES.find(([pattern]) => pattern.test(path))?.[1];
    if (type === undefined) {
      continue;
    }
    const source = readFileSync(join(FOLDER, path), "utf8");
    const content = path.endsWith(".ts") ? withoutTypes(source) : source;
    // Of types alone nothing is left.
    if (path.endsWith(".ts") && !/^(?:import|export)\b/m.test(content)) {
      continue;
    }
    files.set(path, { type, content: Buffer.from(content) });
  }
  const version = hash([...files].flatMap(([path, { content }]) => [path, content]));
  const content = Buffer.from(page(version, [...files.keys()]));
  const etag = `"${hash([content])}"`;
  return { version, page: { type: "text/html; charset=utf-8", content, etag }, files };
}

const hash = (parts: readonly (string | Buffer)[]): string => {
  const all = createHash("sha256");
  for (const part of parts) {
    all.update(part).update("\0");
  }
  return all.digest("hex").slice(0, 16);
};

/**
 * A browser's module of one in TypeScript: what Node does with every file of the platform, so there is no build. Its
 * function says once that it is experimental; the version of Node is pinned, and the line would be in the middle of the JSON log.
 */
function withoutTypes(source: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** The page itself. All modules are named in it, so that they are fetched concurrently and not one after the other. */
function page(version: string, paths: readonly string[]): string {
  const at = (path: string) => `/console/${version}/${path}`;
  const styles = paths.filter((path) => path.endsWith(".css"));
  const modules = paths.filter((path) => path.endsWith(".ts"));
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<meta name="event-types" content="${eventTypes.join(" ")}">
<meta name="alert-metrics" content="${alertMetricsContent()}">
<title>Slipway</title>
<link rel="icon" type="image/svg+xml" href="${at("icon.svg")}">
${styles.map((path) => `<link rel="stylesheet" href="${at(path)}">`).join("\n")}
${modules.map((path) => `<link rel="modulepreload" href="${at(path)}">`).join("\n")}
<script type="module" src="${at("main.ts")}"></script>
</head>
<body>
<a id="skip" href="#content">Skip to content</a>
<header class="top"><div>
<a class="brand" href="#/"><img src="${at("icon.svg")}" width="28" height="28" alt="">Slipway</a>
<span id="account"></span>
</div></header>
<main id="content"><p class="state">Loading… If nothing else appears here, load the page again.</p></main>
<p id="announcer" class="unseen" role="status"></p>
<noscript><p class="state">This page needs JavaScript. The API has the same information: <a href="/docs">/docs</a>.</p></noscript>
</body>
</html>
`;
}

/** What a rule of an alert can watch: the metric, whether it has a threshold, and the types of project that have it. */
const alertMetricsContent = (): string =>
  alertMetrics
    .map((one) => [one, isMeasured(one) ? "percent" : "", typesOfAlertMetric[one].join(",")].join(":"))
    .join(" ");

/**
 * Only what is served here, no script or style inside the page, and no way for a text to become markup at all. It shows logs and
 * names that any user may have written. A frame has an invoice that the page has fetched, in which no script runs; it gets this policy, which
 * names its style.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  `style-src 'self' ${STYLE_SOURCE}`,
  "img-src 'self'",
  "connect-src 'self'",
  "frame-src blob:",
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
  const [, requested, name = ""] = /^([0-9a-f]{16})\/(.+)$/.exec(path) ?? [];
  const file = files.get(name);
  if (requested === undefined || file === undefined) {
    throw failures.routeNotFound();
  }
  return requested === version
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
