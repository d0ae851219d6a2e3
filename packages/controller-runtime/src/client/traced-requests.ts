import type { Tracing } from "@slipway/process/tracing";
import type { RequestObservation } from "./transport.ts";

type Observer = (observation: RequestObservation) => void;

/**
 * Records requests to the apiserver as children of the span that makes them; those of no span are not recorded.
 * @param also observes every request; without tracing it is the only observer
 */
export function traceRequests(
  tracing: Tracing | undefined,
  also: Observer,
  { telemetryPrefix, writesOnly = false }: { telemetryPrefix: string; writesOnly?: boolean },
): Observer {
  if (!tracing) {
    return also;
  }
  return (observation) => {
    also(observation);
    const { verb, method, host, path, status, durationMs } = observation;
    if (verb === "watch" || (writesOnly && method === "GET") || !tracing.current()) {
      return;
    }
    const { template, namespace, name } = describePath(path);
    const failed = status === 0 || status >= 400;
    tracing.record({
      name: `${method} ${template}`,
      kind: "client",
      startedAt: Date.now() - durationMs,
      failed,
      attributes: {
        "http.request.method": method,
        "url.template": template,
        "server.address": host,
        "http.response.status_code": status === 0 ? undefined : status,
        "error.type": failed ? (status === 0 ? "network" : String(status)) : undefined,
        "k8s.namespace.name": namespace,
        [`${telemetryPrefix}.object.name`]: name,
        [`${telemetryPrefix}.kube.verb`]: verb,
      },
    });
  };
}

interface PathParts {
  /** The path with `{namespace}` and `{name}` in place of theirs. */
  template: string;
  namespace?: string;
  name?: string;
}

/** Takes a path of the Kubernetes API apart. Pure. */
export function describePath(path: string): PathParts {
  const [root, ...rest] = path.split("/").filter((part) => part !== "");
  const prefix = rest.splice(0, root === "api" ? 1 : 2);
  if ((root !== "api" && root !== "apis") || rest.length === 0) {
    return { template: "/{other}" };
  }
  const parts: PathParts = { template: "" };
  const names: string[] = [root, ...prefix];
  // `namespaces/<name>` is the object itself when nothing follows.
  if (rest[0] === "namespaces" && rest.length > 2) {
    parts.namespace = decodeURIComponent(rest[1] ?? "");
    names.push("namespaces", "{namespace}");
    rest.splice(0, 2);
  }
  const [plural = "", name, ...subresource] = rest;
  names.push(plural);
  if (name !== undefined) {
    parts.name = decodeURIComponent(name);
    names.push("{name}", ...subresource.slice(0, 1));
  }
  parts.template = `/${names.join("/")}`;
  return parts;
}
