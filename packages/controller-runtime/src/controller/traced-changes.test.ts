import { AsyncLocalStorage } from "node:async_hooks";
import { type SpanStart, Tracing } from "@slipway/process/tracing";
import { describe, expect, it } from "vitest";
import type { KubernetesObject } from "../client/types.ts";
import { RetryableError, TerminalError, WaitingError } from "./errors.ts";
import { type Outcome, outcomeOfError, outcomeOfResult } from "./outcome.ts";
import { TracedChanges, tracedIn } from "./traced-changes.ts";

const ANNOTATION = "test.dev/traceparent";

const traceparent = (digit: string, flags = "01") => `00-${digit.repeat(32)}-${digit.repeat(16)}-${flags}`;

function widget(change: {
  trace?: string;
  generation?: number;
  observed?: number;
  uid?: string;
  deleted?: true;
}) {
  const { trace, generation = 1, observed, uid = "u1", deleted } = change;
  return {
    kind: "Widget",
    metadata: {
      namespace: "a",
      name: "w",
      uid,
      generation,
      ...(trace === undefined ? {} : { annotations: { [ANNOTATION]: trace } }),
      ...(deleted ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    ...(observed === undefined ? {} : { status: { observedGeneration: observed } }),
  };
}

interface Ended {
  failed: boolean | undefined;
  attributes: Record<string, unknown>;
}

/** What reconciles of these objects leave of spans, one after the other. */
function follower(objects: { current: KubernetesObject[] }) {
  const started: SpanStart[] = [];
  const ended: Ended[] = [];
  const tracing = new Tracing({
    start: (options) => {
      started.push(options);
      const attributes: Record<string, unknown> = {};
      return {
        traceparent: traceparent("f"),
        set: (more) => void Object.assign(attributes, more),
        end: ({ failed } = {}) => void ended.push({ failed, attributes }),
      };
    },
    close: () => Promise.resolve(),
  });
  const changes = new TracedChanges(
    { tracing, traceparentAnnotation: ANNOTATION, telemetryPrefix: "test" },
    "widget",
    () => objects.current,
  );
  const reconcile = (outcome: Outcome = outcomeOfResult(undefined)) =>
    changes.follow("a/w", async () => {
      await Promise.resolve();
      return outcome;
    });
  return { started, ended, reconcile, changes, tracing };
}

describe("a reconcile after a traced write", () => {
  it("is a child of the write, once, with what it was about and how it ended", async () => {
    const objects = { current: [widget({ trace: traceparent("1") })] };
    const { started, ended, reconcile } = follower(objects);
    await reconcile();
    await reconcile();
    expect(started).toEqual([
      {
        name: "widget",
        kind: "internal",
        parent: traceparent("1"),
        attributes: {
          "test.controller": "widget",
          "test.object.kind": "Widget",
          "k8s.namespace.name": "a",
          "test.object.name": "w",
          "test.object.uid": "u1",
          "test.object.generation": 1,
        },
      },
    ]);
    expect(ended).toEqual([{ failed: false, attributes: { "test.outcome": "success" } }]);

    objects.current = [widget({ trace: traceparent("2"), generation: 2, observed: 1 })];
    await reconcile();
    await reconcile();
    expect(started.map(({ parent }) => parent)).toEqual([traceparent("1"), traceparent("2")]);
  });

  it.each([
    ["without an annotation", {}],
    ["with one that is none", { trace: "nonsense" }],
    ["of a trace that is not sampled", { trace: traceparent("1", "00") }],
    [
      "that a status reports already, as after a restart",
      { trace: traceparent("1"), generation: 3, observed: 3 },
    ],
    ["that is being deleted", { trace: traceparent("1"), deleted: true as const }],
  ])("%s makes no span", async (_, change) => {
    const { started, reconcile } = follower({ current: [widget(change)] });
    await reconcile();
    expect(started).toEqual([]);
  });

  it("is not one after a write by somebody else, who left the annotation as it was", async () => {
    const objects = { current: [widget({ trace: traceparent("1"), generation: 1, observed: 1 })] };
    const { started, reconcile } = follower(objects);
    await reconcile();
    objects.current = [widget({ trace: traceparent("1"), generation: 2, observed: 1 })];
    await reconcile();
    expect(started).toEqual([]);
  });

  it("that was left alone before is the first one", async () => {
    const objects: { current: KubernetesObject[] } = { current: [] };
    const { started, reconcile } = follower(objects);
    await reconcile();
    objects.current = [widget({ trace: traceparent("1") })];
    await reconcile();
    expect(started).toHaveLength(1);
  });

  it("concerns each object of a key in its turn, and deleted ones are forgotten", async () => {
    const first = widget({ trace: traceparent("1"), uid: "u1" });
    const second = widget({ trace: traceparent("2"), uid: "u2" });
    const objects: { current: KubernetesObject[] } = { current: [first, second] };
    const { started, reconcile } = follower(objects);
    await reconcile();
    await reconcile();
    await reconcile();
    expect(started.map(({ parent }) => parent)).toEqual([traceparent("1"), traceparent("2")]);
    objects.current = [];
    await reconcile();
    objects.current = [first];
    await reconcile();
    expect(started).toHaveLength(3);
  });

  it.each([
    ["waiting", outcomeOfError(new WaitingError("Soon", "soon", { requeueAfterMs: 1 })), false],
    ["retryable", outcomeOfError(new RetryableError("Broken", "broken")), true],
    ["terminal", outcomeOfError(new TerminalError("Wrong", "wrong")), true],
    ["panic", outcomeOfError(new Error("a defect with a s3cr3t")), true],
  ] as const)("that ends %s says so, and no message", async (kind, outcome, failed) => {
    const { ended, reconcile } = follower({ current: [widget({ trace: traceparent("1") })] });
    await reconcile(outcome);
    expect(ended).toEqual([{ failed, attributes: { "test.outcome": kind, "test.reason": outcome.reason } }]);
  });

  it("is where its writes belong, and its end is theirs", async () => {
    const { changes, tracing } = follower({ current: [widget({ trace: traceparent("1") })] });
    let later = () => tracing.current();
    await changes.follow("a/w", async () => {
      later = AsyncLocalStorage.bind(() => tracing.current());
      expect(later()?.traceparent).toBe(traceparent("f"));
      return outcomeOfResult(undefined);
    });
    expect(later()).toBeUndefined();
  });
});

describe("the objects of a key", () => {
  it("are those of the store, unless they are left alone", () => {
    const object = widget({});
    const store = { get: () => object } as unknown as Parameters<typeof tracedIn>[0];
    expect(tracedIn(store)({ namespace: "a", name: "w" })).toEqual([object]);
    expect(tracedIn(store, () => true)({ namespace: "a", name: "w" })).toEqual([]);
  });
});
