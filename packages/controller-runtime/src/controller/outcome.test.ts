import { describe, expect, it } from "vitest";
import { KubeError } from "../client/errors.ts";
import { RetryableError, TerminalError, WaitingError } from "./errors.ts";
import { outcomeOfError, outcomeOfResult } from "./outcome.ts";

const kube = (status: number, reason: string, causes: { reason: string }[] = []) =>
  new KubeError({ status, reason, message: "m", body: { details: { causes } } });

describe("outcomeOfError", () => {
  it.each([
    [
      "terminal",
      new TerminalError("Bad", "m"),
      { kind: "terminal", requeue: { type: "none" }, visible: true },
    ],
    [
      "waiting",
      new WaitingError("Wait", "m", { requeueAfterMs: 7 }),
      { kind: "waiting", requeue: { type: "after", ms: 7 }, eventType: "Normal" },
    ],
    [
      "retryable",
      new RetryableError("Try", "m"),
      { kind: "retryable", requeue: { type: "backoff" }, visible: true },
    ],
    ["a conflict", kube(409, "Conflict"), { kind: "retryable", visible: false }],
    ["an overloaded apiserver", kube(503, "ServiceUnavailable"), { kind: "retryable", visible: false }],
    ["no answer", kube(0, "NetworkError"), { kind: "retryable", visible: false }],
    ["a refused object", kube(422, "Invalid"), { kind: "retryable", reason: "ApiRefused", visible: true }],
    [
      "a namespace going away",
      kube(403, "Forbidden", [{ reason: "NamespaceTerminating" }]),
      { kind: "waiting", reason: "NamespaceTerminating" },
    ],
    ["the time limit", new DOMException("t", "TimeoutError"), { kind: "retryable", reason: "TimedOut" }],
    ["a defect", new TypeError("x of undefined"), { kind: "panic", reason: "InternalError" }],
    ["something that is no error", "text", { kind: "panic", requeue: { type: "backoff" } }],
  ])("maps %s", (_name, error, want) => {
    expect(outcomeOfError(error)).toMatchObject(want);
  });

  it("keeps the text of a defect out of what the owner reads", () => {
    expect(outcomeOfError(new Error("password=hunter2")).message).not.toContain("hunter2");
  });
});

describe("outcomeOfResult", () => {
  it("requeues when requested, else not", () => {
    expect(outcomeOfResult({ requeueAfterMs: 5 }).requeue).toEqual({ type: "after", ms: 5 });
    expect(outcomeOfResult(undefined).requeue).toEqual({ type: "none" });
  });
});
