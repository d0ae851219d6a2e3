import { METHODS } from "node:http";
import type { FastifyInstance } from "fastify";
import { failures } from "../errors/catalog.ts";
import type { AnyRoute } from "./route.ts";

/** Operation id of what answers a known path with a method that it does not have. */
export const OTHER_METHOD = "otherMethod";
/** A CONNECT never becomes a request in Node: its connection is closed. */
const NEVER_SEEN = new Set(["CONNECT"]);

/** The methods of each path, as an `Allow` header lists them: HEAD wherever there is GET, OPTIONS everywhere. */
export function allowedMethods(routes: readonly Pick<AnyRoute, "method" | "path">[]): Map<string, string[]> {
  const byPath = new Map<string, Set<string>>();
  for (const { method, path } of routes) {
    const methods = byPath.get(path) ?? new Set<string>(["OPTIONS"]);
    methods.add(method);
    if (method === "GET") {
      methods.add("HEAD");
    }
    byPath.set(path, methods);
  }
  return new Map([...byPath].map(([path, methods]) => [path, [...methods].sort()]));
}

/**
 * Answers every known path under every other method: 405 with `Allow`, and OPTIONS with 204 and `Allow`. They are routes,
 * not a handler of unknown ones, so that `DELETE /v1/project/plans` does not reach the project whose id is `plans`.
 * No credential is needed: the paths and their methods are public in the OpenAPI document.
 */
export function installOtherMethods(app: FastifyInstance, routes: readonly AnyRoute[]): void {
  const known = METHODS.filter((method) => !NEVER_SEEN.has(method));
  for (const method of known) {
    if (!app.supportedMethods.includes(method)) {
      app.addHttpMethod(method);
    }
  }
  for (const [path, allowed] of allowedMethods(routes)) {
    const allow = allowed.join(", ");
    app.route({
      method: known.filter((method) => !allowed.includes(method)),
      url: path,
      config: { operationId: OTHER_METHOD },
      // Before the body, which is not read for this.
      onRequest: (_request, _reply, done) => done(failures.methodNotAllowed(allow)),
      handler: () => undefined,
    });
    app.route({
      method: "OPTIONS",
      url: path,
      config: { operationId: OTHER_METHOD },
      onRequest: (_request, reply) => void reply.code(204).header("allow", allow).send(),
      handler: () => undefined,
    });
  }
}
