/** W3C trace context, level 1: `00-<trace id>-<span id>-<flags>`. Pure. */

/** The span that a `traceparent` names. */
export interface SpanName {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  /** Whether whoever wrote it records its part. */
  sampled: boolean;
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const NOBODY = /^0+$/;

/** What a `traceparent` says; undefined when it is none, or of a version that is not known. */
export function parseTraceparent(text: unknown): SpanName | undefined {
  if (typeof text !== "string") {
    return undefined;
  }
  const [, traceId = "", spanId = "", flags = ""] = TRACEPARENT.exec(text) ?? [];
  if (traceId === "" || NOBODY.test(traceId) || NOBODY.test(spanId)) {
    return undefined;
  }
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function formatTraceparent({ traceId, spanId, sampled }: SpanName): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}
