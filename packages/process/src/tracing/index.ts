/** Optional traces of what a process does. Off, it costs nothing. */

import type { TracingOptions, TracingSettings } from "./settings.ts";
import { Tracing } from "./tracing.ts";

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

/** Tracing as it is set; undefined where it is off, and then none of OpenTelemetry's packages is loaded. */
export async function openTracing(
  settings: TracingSettings | undefined,
  options: TracingOptions,
): Promise<Tracing | undefined> {
  if (settings === undefined) {
    return undefined;
  }
  const { otlpSpans } = await import("./otlp.ts");
  return new Tracing(otlpSpans(settings, options));
}
