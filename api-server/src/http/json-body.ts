import type { FastifyInstance } from "fastify";
import { failures } from "../errors/catalog.ts";
import { jsonShapeProblem } from "./json-shape.ts";

/** The character set that a content type names; JSON has only one. */
const CHARSET = /;\s*charset\s*=\s*"?([^\s;"]*)/i;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads JSON bodies: bytes that are no UTF-8, broken JSON, objects with `__proto__` or `constructor.prototype`, keys that
 * occur twice, endless nesting and more values than any operation takes are refused. An absent body is left undefined for the schema to check.
 */
export function installJsonBody(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, bytes, done) => {
    const charset = CHARSET.exec(request.headers["content-type"] ?? "")?.[1];
    if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
      done(failures.mediaTypeUnsupported());
      return;
    }
    if (bytes.length === 0) {
      // Some clients send the content type with nothing behind it.
      done(null, undefined);
      return;
    }
    let text: string;
    try {
      text = utf8.decode(bytes as Buffer);
    } catch {
      done(failures.malformedBody("the body is not valid UTF-8"));
      return;
    }
    const problem = jsonShapeProblem(text);
    if (problem === undefined) {
      void parseJson(request, text, done);
    } else {
      done(failures.malformedBody(problem));
    }
  });
}

/** Leaves bodies of every type as received bytes: signatures are computed over these. For a context of its own. */
export function installRawBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, bytes, done) => done(null, bytes));
}
