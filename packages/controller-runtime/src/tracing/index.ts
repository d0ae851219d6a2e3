/** Optional traces of what a process does, and the requests to Kubernetes that are part of it. Off, it costs nothing. */
export { traceRequests } from "./kube-requests.ts";
export { openTracing } from "./open.ts";
export { type TracingOptions, type TracingSettings, tracingSettings, tracingVariables } from "./settings.ts";
export { formatTraceparent, parseTraceparent, type SpanName } from "./traceparent.ts";
export { type Attributes, type Span, type SpanSource, type SpanStart, Tracing } from "./tracing.ts";
