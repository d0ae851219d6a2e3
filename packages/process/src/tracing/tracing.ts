import { AsyncLocalStorage } from "node:async_hooks";

/** Attributes of a span. The exporter bounds their values. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** One sampled span, until it ends. */
export interface Span {
  /** Names it, as W3C trace context has it: a child elsewhere takes it for its parent. */
  readonly traceparent: string;
  set(attributes: Attributes): void;
  /** Ends it. What is set afterwards is lost. */
  end(options?: { failed?: boolean }): void;
}

export interface SpanStart {
  /** Bounded: templates, never what a client wrote. */
  name: string;
  kind: "server" | "client" | "internal";
  attributes?: Attributes;
  /** `traceparent` of the span that it is a child of; without one it begins a trace. A parent is sampled, and so is its child. */
  parent?: string;
  /** `traceparent` of a span that it has to do with, and that decides nothing. */
  link?: string;
  /** Milliseconds since 1970; now unless given. */
  startedAt?: number;
}

/** Makes spans and exports them. Nothing here waits, throws or grows without bound. */
export interface SpanSource {
  /** Undefined when the trace is not sampled. */
  start(options: SpanStart): Span | undefined;
  /** Sends what is left, for a bounded time. Never rejects. */
  close(): Promise<void>;
}

interface Scope {
  span: Span;
  /** Monotonic milliseconds after which it counts no more; undefined while its work continues. */
  until: number | undefined;
}

/** Spans, and which of them the code that runs belongs to. A process without tracing has none of these. */
export class Tracing {
  readonly #source: SpanSource;
  readonly #scopes = new AsyncLocalStorage<Scope>();
  readonly #scopeOf = new WeakMap<Span, Scope>();

  constructor(source: SpanSource) {
    this.#source = source;
  }

  /** Begins a span; undefined when its trace is not sampled, and then there is nothing to be done. */
  begin(options: SpanStart): Span | undefined {
    return this.#source.start(options);
  }

  /** Does the work as a part of the span, all that it awaits included. */
  within<T>(span: Span, work: () => T): T {
    let scope = this.#scopeOf.get(span);
    if (!scope) {
      scope = { span, until: undefined };
      this.#scopeOf.set(span, scope);
    }
    return this.#scopes.run(scope, work);
  }

  /**
   * Ends the span, and with it the scope of what still runs in it: timers and streams that it began are no part of it.
   * @param lingerMs for how long the rest of its work belongs to it yet
   */
  end(span: Span, { failed, lingerMs = 0 }: { failed?: boolean; lingerMs?: number } = {}): void {
    const scope = this.#scopeOf.get(span);
    if (scope) {
      scope.until = performance.now() + lingerMs;
    }
    span.end({ failed });
  }

  /** The span that the running code is a part of. */
  current(): Span | undefined {
    const scope = this.#scopes.getStore();
    if (!scope || (scope.until !== undefined && performance.now() >= scope.until)) {
      return undefined;
    }
    return scope.span;
  }

  /** Records something that has ended as a child of the current span; nothing without one. */
  record(done: Omit<SpanStart, "parent" | "link"> & { startedAt: number; failed: boolean }): void {
    const parent = this.current()?.traceparent;
    if (parent === undefined) {
      return;
    }
    const { failed, ...start } = done;
    this.#source.start({ ...start, parent })?.end({ failed });
  }

  /** Sends what is left, for a bounded time. Never rejects. */
  close(): Promise<void> {
    return this.#source.close();
  }
}

/** W3C trace context, level 1: `00-<trace id>-<span id>-<flags>`. Pure. */

/** The span that a `traceparent` names. */
export interface SpanName {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  /** Whether its writer records its part. */
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
