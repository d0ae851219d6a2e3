import type { TracingSettings } from "./settings.ts";
import { Tracing } from "./tracing.ts";

export interface TracingOptions {
  /** `service.name` of every span. */
  service: string;
  /** `service.instance.id`: the pod. */
  instance: string;
  log: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
  };
}

/** Tracing as it is set; undefined where it is off, and then none of OpenTelemetry's packages is loaded. */
export async function openTracing(
  settings: TracingSettings | undefined,
  options: TracingOptions,
): Promise<Tracing | undefined> {
  if (settings === undefined) return undefined;
  const { otlpSpans } = await import("./otlp.ts");
  return new Tracing(otlpSpans(settings, options));
}
