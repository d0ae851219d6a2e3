import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import { startTraceReceiver, type TraceReceiver } from "../../../../test/kit/processes/trace-receiver.ts";
import { openTracing } from "./index.ts";
import type { Tracing } from "./tracing.ts";
import { parseTraceparent } from "./tracing.ts";

const logged: { level: string; message: string }[] = [];
const log = {
  info: (_fields: object, message: string) => void logged.push({ level: "info", message }),
  warn: (_fields: object, message: string) => void logged.push({ level: "warn", message }),
};

async function open(url: string, ratio = 1): Promise<Tracing> {
  const tracing = await openTracing({ url, ratio }, { service: "test", instance: "one", log });
  if (!tracing) {
    throw new Error("tracing is off");
  }
  return tracing;
}

let receiver: TraceReceiver | undefined;
afterEach(async () => {
  logged.length = 0;
  await receiver?.stop();
  receiver = undefined;
});

describe("spans over OTLP", () => {
  it("arrive with parent, kind, attributes, links and outcome, the last ones when it is closed", async () => {
    receiver = await startTraceReceiver();
    const tracing = await open(receiver.url);
    const stranger = `00-${"a".repeat(32)}-${"b".repeat(16)}-00`;
    const outer = tracing.begin({
      name: "outer",
      kind: "server",
      link: stranger,
      attributes: { a: "x", b: undefined },
    });
    if (!outer) {
      throw new Error("not sampled");
    }
    outer.set({ "long.text": "y".repeat(10_000) });
    const startedAt = Date.now() - 50;
    await tracing.within(outer, async () => {
      await Promise.resolve();
      tracing.record({ name: "inner", kind: "client", startedAt, failed: true });
    });
    tracing.end(outer);
    await tracing.close();

    const [inner, last] = receiver.spans;
    expect(last).toMatchObject({ name: "outer", service: "test", kind: 2, parentSpanId: "", failed: false });
    expect(last?.attributes).toEqual({ a: "x", "long.text": "y".repeat(256) });
    expect(last?.links).toEqual([`${"a".repeat(32)}-${"b".repeat(16)}`]);
    expect(inner).toMatchObject({ name: "inner", kind: 3, failed: true, traceId: last?.traceId });
    expect(inner?.parentSpanId).toBe(last?.spanId);
    expect(inner?.startedAt).toBe(startedAt);
    expect(parseTraceparent(outer.traceparent)).toEqual({
      traceId: last?.traceId,
      spanId: last?.spanId,
      sampled: true,
    });
  });

  it("of a trace that is not sampled are none; a parent decides for its children", async () => {
    receiver = await startTraceReceiver();
    const tracing = await open(receiver.url, 0);
    expect(tracing.begin({ name: "first", kind: "server" })).toBeUndefined();
    // A link decides nothing.
    const link = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    expect(tracing.begin({ name: "linked", kind: "server", link })).toBeUndefined();
    const child = tracing.begin({ name: "child", kind: "internal", parent: link });
    if (child) {
      tracing.end(child);
    }
    await tracing.close();
    expect(receiver.spans.map(({ name, traceId }) => [name, traceId])).toEqual([["child", "a".repeat(32)]]);
  });

  it("are kept at about the ratio that is set", async () => {
    receiver = await startTraceReceiver();
    const tracing = await open(receiver.url, 0.25);
    const kept = Array.from({ length: 4_000 }, () => tracing.begin({ name: "one", kind: "server" })).filter(
      Boolean,
    );
    await tracing.close();
    // Six standard deviations.
    expect(Math.abs(kept.length - 1_000)).toBeLessThan(165);
  });

  // Shows: docs/operations/tracing.md#when-the-receiver-is-unavailable: an unavailable receiver slows
  it("that no receiver accepts are dropped in bounded memory, without an error, logged once, and sent again later", async () => {
    const gone = await startTraceReceiver();
    await gone.stop();
    const tracing = await open(gone.url);
    const spans = (count: number) => {
      for (let index = 0; index < count; index += 1) {
        const span = tracing.begin({ name: "lost", kind: "server" });
        if (span) {
          tracing.end(span);
        }
      }
    };
    const before = performance.now();
    spans(20_000);
    // Nothing waits for the receiver: 50 µs for each are plenty on a busy machine.
    expect(performance.now() - before).toBeLessThan(5_000);
    await eventually("the loss to be reported", () => logged.length > 0, 90_000);
    expect(logged).toEqual([{ level: "warn", message: "traces cannot be sent; they are lost" }]);

    receiver = await startTraceReceiver({ port: Number(new URL(gone.url).port) });
    const back = receiver;
    await eventually(
      "spans to arrive",
      () => {
        spans(1);
        return back.spans.length > 0;
      },
      90_000,
    );
    await eventually("the return to be reported", () => logged.length > 1, 90_000);
    await tracing.close();
    // What waited was bounded: the queue, and two batches under way.
    expect(back.spans.filter(({ name }) => name === "lost").length).toBeLessThan(5_000);
  }, 240_000);

  it("are dropped at the end when the receiver does not answer: closing takes no longer than it may", async () => {
    receiver = await startTraceReceiver({ answer: 0 });
    const tracing = await open(receiver.url);
    const span = tracing.begin({ name: "stuck", kind: "server" });
    if (span) {
      tracing.end(span);
    }
    const before = performance.now();
    await tracing.close();
    expect(performance.now() - before).toBeLessThan(4_500);
  });
});

describe("tracing that is off", () => {
  it("is nothing at all", async () => {
    expect(await openTracing(undefined, { service: "test", instance: "one", log })).toBeUndefined();
  });
});
