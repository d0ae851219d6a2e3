import { z } from "zod";
import { type AnyRoute, defineRoute } from "../http/route.ts";
import { openApiDocument } from "./document.ts";

/** Version of the API, as the path prefix says it, and of the document. */
const VERSION = "1.0.0";

/** The route that shows the document of all routes, its own among them. */
export function readOpenApi(routes: () => readonly AnyRoute[]): AnyRoute {
  let json: string | undefined;
  return defineRoute({
    operationId: "readOpenApi",
    method: "GET",
    path: "/v1/openapi.json",
    summary: "Read this document",
    tags: ["API"],
    responses: { 200: { description: "The OpenAPI 3.1 document.", schema: z.looseObject({}) } },
    handler: () => {
      json ??= JSON.stringify(openApiDocument(routes(), VERSION));
      return { status: 200, json };
    },
  });
}
