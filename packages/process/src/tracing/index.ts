/** Optional traces of what a process does. Off, it costs nothing. */
export { openTracing } from "./open.ts";
export { type TracingOptions, type TracingSettings, tracingSettings, tracingVariables } from "./settings.ts";
export { formatTraceparent, parseTraceparent, type SpanName } from "./traceparent.ts";
export { type Attributes, type Span, type SpanSource, type SpanStart, Tracing } from "./tracing.ts";
