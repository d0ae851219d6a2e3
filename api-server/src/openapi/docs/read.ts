import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineRoute } from "../../http/route.ts";
import type { Answer } from "../../http/types.ts";
import { docsFiles } from "./files.ts";

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
