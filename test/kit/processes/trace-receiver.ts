import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as it was received. */
export interface ReceivedSpan {
  service: string;
  traceId: string;
  spanId: string;
  /** Empty for the first of a trace. */
  parentSpanId: string;
  name: string;
  kind: number;
  failed: boolean;
  attributes: Record<string, unknown>;
  /** Spans that it names beside its parent, as `<trace id>-<span id>`. */
  links: string[];
  /** Milliseconds since 1970. */
  startedAt: number;
  endedAt: number;
}

/** A receiver of traces over OTLP/HTTP in JSON. */
export interface TraceReceiver {
  /** What an exporter is given. */
  url: string;
  spans: ReceivedSpan[];
  /** Everything that was received, as text. */
  text(): string;
  stop(): Promise<void>;
}

interface Value {
  stringValue?: string;
  intValue?: number | string;
  doubleValue?: number;
  boolValue?: boolean;
}
type Attributes = { key: string; value: Value }[];
interface Export {
  resourceSpans: { resource: { attributes: Attributes }; scopeSpans: { spans: RawSpan[] }[] }[];
}
interface RawSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes?: Attributes;
  links?: { traceId: string; spanId: string }[];
  status?: { code?: number };
  startTimeUnixNano: string;
  endTimeUnixNano: string;
}

/** @param answer status of its answers; 0 never answers */
export async function startTraceReceiver({
  host = "127.0.0.1",
  port = 0,
  answer = 200,
} = {}): Promise<TraceReceiver> {
  const spans: ReceivedSpan[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      bodies.push(body);
      if (answer === 200) {
        spans.push(...spansOf(JSON.parse(body) as Export));
      }
      if (answer !== 0) {
        response.writeHead(answer, { "content-type": "application/json" }).end("{}");
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}/v1/traces`,
    spans,
    text: () => bodies.join("\n"),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const spansOf = ({ resourceSpans }: Export): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        service: String(plain(resource.attributes)["service.name"]),
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? "",
        name: span.name,
        kind: span.kind,
        failed: span.status?.code === 2,
        attributes: plain(span.attributes ?? []),
        links: (span.links ?? []).map(({ traceId, spanId }) => `${traceId}-${spanId}`),
        startedAt: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
        endedAt: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
      })),
    ),
  );

const plain = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
