import type { FastifyInstance } from "fastify";
import { failures } from "../errors/catalog.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads JSON bodies: bytes that are no UTF-8, broken JSON, and objects with `__proto__` or `constructor.prototype` are
 * refused. An absent body is left undefined for the schema to judge.
 */
export function installJsonBody(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, bytes, done) => {
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
    void parseJson(request, text, done);
  });
}
