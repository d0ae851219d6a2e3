/** Optional traces of what a process does. Off, it costs nothing. */
export { openTracing } from "./open.ts";
export { type TracingOptions, type TracingSettings, tracingSettings, tracingVariables } from "./settings.ts";
export {
  type Attributes,
  formatTraceparent,
  parseTraceparent,
  type Span,
  type SpanName,
  type SpanSource,
  type SpanStart,
  Tracing,
} from "./tracing.ts";
