import {
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { TracingOptions, TracingSettings } from "./settings.ts";
import type { Span, SpanSource, SpanStart } from "./tracing.ts";
import { formatTraceparent, parseTraceparent } from "./tracing.ts";

/** Spans that wait to be sent, and how many one batch has: further ones are lost. */
const QUEUE = 2_048;
const BATCH = 512;
/** Concurrent batches: at the end the whole queue is sent, beside one in progress. */
const EXPORTS = QUEUE / BATCH + 1;
/** Milliseconds between two batches; a batch may take, tries and all. */
const DELAY_MS = 1_000;
const EXPORT_MS = 5_000;
/** Milliseconds in which the rest is sent at the end. */
const CLOSE_MS = 3_000;
/** Characters of an attribute's text. */
const TEXT_LIMIT = 256;

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

/** Spans by OpenTelemetry's SDK, sent over OTLP/HTTP in JSON. The one module that loads those packages. */
export function otlpSpans(
  { url, ratio }: TracingSettings,
  { service, instance, log }: TracingOptions,
): SpanSource {
  const exporter = new OTLPTraceExporter({ url, timeoutMillis: EXPORT_MS, concurrencyLimit: EXPORTS });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ "service.name": service, "service.instance.id": instance }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanLimits: { attributeValueLengthLimit: TEXT_LIMIT, attributeCountLimit: 32, linkCountLimit: 4 },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: loggingLoss(exporter, log),
        maxQueueSize: QUEUE,
        maxExportBatchSize: BATCH,
        scheduledDelayMillis: DELAY_MS,
        exportTimeoutMillis: EXPORT_MS,
      }),
    ],
  });
  const tracer = provider.getTracer("slipway");

  const start = ({ name, kind, attributes, parent, link, startedAt }: SpanStart): Span | undefined => {
    const above = contextOf(parent);
    const linked = contextOf(link);
    const span = tracer.startSpan(
      name,
      {
        kind: KINDS[kind],
        attributes,
        ...(linked ? { links: [{ context: linked }] } : {}),
        ...(startedAt === undefined ? {} : { startTime: startedAt }),
      },
      above ? trace.setSpanContext(ROOT_CONTEXT, above) : ROOT_CONTEXT,
    );
    if (!span.isRecording()) {
      return undefined;
    }
    const { traceId, spanId } = span.spanContext();
    return {
      traceparent: formatTraceparent({ traceId, spanId, sampled: true }),
      set: (more) => void span.setAttributes(more),
      end: ({ failed = false } = {}) => {
        if (failed) {
          span.setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      },
    };
  };
  return { start, close: () => within(CLOSE_MS, provider.shutdown()) };
}

function contextOf(traceparent: string | undefined): SpanContext | undefined {
  const named = parseTraceparent(traceparent);
  if (!named) {
    return undefined;
  }
  const { traceId, spanId, sampled } = named;
  return { traceId, spanId, traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true };
}

/** Logs once when spans can no longer be sent, and when they can again: not for every batch. */
function loggingLoss(exporter: SpanExporter, log: TracingOptions["log"]): SpanExporter {
  let isLosing = false;
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.error !== undefined || result.code !== 0;
        if (failed !== isLosing) {
          isLosing = failed;
          if (failed) {
            log.warn({ err: result.error, spans: spans.length }, "traces cannot be sent; they are lost");
          } else {
            log.info({}, "traces can be sent again");
          }
        }
        done(result);
      }),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  };
}

/** Waits for the work, but not for long, and not for its success. */
function within(ms: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const settle = () => {
      clearTimeout(timer);
      resolve();
    };
    work.then(settle, settle);
  });
}
