import { type SpanStart, Tracing } from "@slipway/process/tracing";
import { describe, expect, it } from "vitest";
import { describePath, traceRequests } from "./traced-requests.ts";

describe("paths of the Kubernetes API", () => {
  it.each([
    ["/api/v1/namespaces/a/pods", { template: "/api/v1/namespaces/{namespace}/pods", namespace: "a" }],
    [
      "/apis/apps/v1/namespaces/a/deployments/p1/scale",
      {
        template: "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
        namespace: "a",
        name: "p1",
      },
    ],
    ["/api/v1/namespaces/a", { template: "/api/v1/namespaces/{name}", name: "a" }],
    ["/api/v1/namespaces", { template: "/api/v1/namespaces" }],
    [
      "/apis/test.dev/v1/widgets/a.example.com",
      { template: "/apis/test.dev/v1/widgets/{name}", name: "a.example.com" },
    ],
    ["/readyz", { template: "/{other}" }],
    ["/api", { template: "/{other}" }],
    ["/", { template: "/{other}" }],
  ])("%s has a template without names", (path, parts) => {
    expect(describePath(path)).toEqual(parts);
  });
});

describe("requests to Kubernetes", () => {
  const started: SpanStart[] = [];
  const tracing = new Tracing({
    start: (options) => {
      started.push(options);
      return { traceparent: `of ${options.name}`, set: () => {}, end: () => {} };
    },
    close: () => Promise.resolve(),
  });
  const seen: string[] = [];
  const request = (method: string, verb: string, status = 200) => ({
    verb,
    method,
    host: "kube",
    path: "/api/v1/namespaces/a/secrets/s",
    status,
    durationMs: 5,
  });
  const within = (work: () => void) => {
    const span = tracing.begin({ name: "outer", kind: "internal" });
    started.length = 0;
    if (span) {
      tracing.within(span, work);
    }
    return span;
  };

  it("are reported to the other observer, with tracing and without", () => {
    const also = ({ verb }: { verb: string }) => void seen.push(verb);
    expect(traceRequests(undefined, also, { telemetryPrefix: "test" })).toBe(also);
    traceRequests(tracing, also, { telemetryPrefix: "test" })(request("GET", "get"));
    expect(seen).toEqual(["get"]);
    expect(started).toEqual([]);
  });

  it("are children of the span that makes them, a failed one as failed; watches are not, nor reads where only writes count", () => {
    within(() => {
      const writes = traceRequests(tracing, () => {}, { telemetryPrefix: "test", writesOnly: true });
      writes(request("GET", "get"));
      writes(request("PATCH", "apply", 409));
      traceRequests(tracing, () => {}, { telemetryPrefix: "test" })(request("GET", "watch"));
    });
    expect(started).toEqual([
      expect.objectContaining({
        name: "PATCH /api/v1/namespaces/{namespace}/secrets/{name}",
        parent: "of outer",
        attributes: expect.objectContaining({ "error.type": "409", "test.object.name": "s" }),
      }),
    ]);
  });

  it("after a span's end are no part of it, unless it lingers", () => {
    const trace = traceRequests(tracing, () => {}, { telemetryPrefix: "test" });
    let late = () => {};
    const span = within(() => {
      late = () => trace(request("GET", "get"));
      late();
    });
    expect(started).toHaveLength(1);
    if (!span) {
      throw new Error("nothing was begun");
    }
    tracing.end(span, { lingerMs: 60_000 });
    tracing.within(span, late);
    expect(started).toHaveLength(2);
    tracing.end(span);
    tracing.within(span, late);
    expect(started).toHaveLength(2);
  });
});
