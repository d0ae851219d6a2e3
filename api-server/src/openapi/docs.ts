import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import type { Answer } from "../http/exchange.ts";
import { defineRoute } from "../http/route.ts";

const swaggerUi = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"));

const TITLE = "Slipway API";

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${TITLE}</title>
<link rel="icon" type="image/png" sizes="32x32" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/page.css">
</head>
<body>
<noscript>This page needs JavaScript. The same is in <a href="/v1/openapi.json">/v1/openapi.json</a>.</noscript>
<main id="docs"></main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/page.js"></script>
</body>
</html>
`;

const style = `body { margin: 0; background: #fafafa; }
noscript { display: block; padding: 2rem; font-family: sans-serif; }
`;

const script = `SwaggerUIBundle({
  url: "/v1/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 4,
  displayRequestDuration: true,
  validatorUrl: null,
});
`;

/** One file of the documentation page. */
export interface DocsFile {
  type: string;
  content: string | Buffer;
}

const text = (type: string, content: string) => async (): Promise<DocsFile> => ({ type, content });
const asset = (type: string, name: string) => {
  let content: Promise<Buffer> | undefined;
  return async (): Promise<DocsFile> => {
    content ??= readFile(join(swaggerUi, name));
    return { type, content: await content };
  };
};

const CSS = "text/css; charset=utf-8";
const JS = "text/javascript; charset=utf-8";

/** All files of the page, by name. Nothing is fetched from elsewhere. */
export const docsFiles: ReadonlyMap<string, () => Promise<DocsFile>> = new Map([
  ["", text("text/html; charset=utf-8", page)],
  ["page.css", text(CSS, style)],
  ["page.js", text(JS, script)],
  ["swagger-ui.css", asset(CSS, "swagger-ui.css")],
  ["swagger-ui-bundle.js", asset(JS, "swagger-ui-bundle.js")],
  ["favicon-32x32.png", asset("image/png", "favicon-32x32.png")],
]);

/** Only what is served here, and no script or style inside the page: text of the document cannot become either. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

async function answer(name: string): Promise<Answer> {
  const file = await docsFiles.get(name)?.();
  if (!file) {
    throw failures.routeNotFound();
  }
  return {
    status: 200,
    content: file.content,
    headers: {
      "content-type": file.type,
      "content-security-policy": POLICY,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "public, max-age=3600",
    },
  };
}

const responses = { 200: { description: "The page, or a file of it.", schema: z.unknown() } };

export const docs = defineRoute({
  operationId: "readDocs",
  method: "GET",
  path: "/docs",
  summary: "Read the documentation",
  tags: ["API"],
  undocumented: true,
  responses,
  handler: () => answer(""),
});

export const docsFile = defineRoute({
  operationId: "readDocsFile",
  method: "GET",
  path: "/docs/:file",
  summary: "Read a file of the documentation",
  tags: ["API"],
  undocumented: true,
  responses,
  handler: ({ params }) => answer((params as { file: string }).file),
});
