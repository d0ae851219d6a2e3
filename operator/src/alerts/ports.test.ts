import { StoreUnavailable } from "@slipway/analytics";
import { expect, test } from "vitest";
import { type AlertStore, failureOf, reopeningStore } from "./ports.ts";

const selection = { projects: [], from: 0, to: 1 };
const { signal } = new AbortController();

test("a store that cannot be opened, or does not answer, is opened again by the next query", async () => {
  const failures = [new Error("ENOENT: password"), undefined, undefined];
  let opened = 0;
  let closed = 0;
  let failure: Error | undefined;
  const store = reopeningStore((): AlertStore => {
    const missing = failures[opened];
    opened += 1;
    if (missing) {
      throw missing;
    }
    const answer = async () => {
      if (failure) {
        throw failure;
      }
      return [];
    };
    const close = async () => {
      closed += 1;
    };
    return { usage: answer, requests: answer, close };
  });
  expect(opened).toBe(0);
  await expect(store.usage(selection, signal)).rejects.toThrow("ENOENT");
  expect(await store.usage(selection, signal)).toEqual([]);
  expect(await store.requests(selection, signal)).toEqual([]);
  expect(opened).toBe(2);
  failure = new StoreUnavailable(new Error("too much"), true);
  await expect(store.usage(selection, signal)).rejects.toThrow(failure);
  expect(closed).toBe(0);
  failure = new StoreUnavailable(new Error("authentication failed"));
  const both = [store.usage(selection, signal), store.requests(selection, signal)];
  expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect([opened, closed]).toEqual([2, 1]);
  failure = undefined;
  expect(await store.usage(selection, signal)).toEqual([]);
  await store.close();
  expect([opened, closed]).toEqual([3, 2]);
});

test.each([
  [new StoreUnavailable(new Error("memory limit exceeded"), true), "too much"],
  [new StoreUnavailable(new Error("Timeout error.")), "refused"],
  [new StoreUnavailable(new Error("<html>414 Request-URI Too Large</html>")), "refused"],
  [new StoreUnavailable(new RangeError("the answer has more than 8388608 bytes")), "too much"],
  [new StoreUnavailable(Object.assign(new Error("connect"), { code: "ECONNREFUSED" })), "away"],
  [new StoreUnavailable(Object.assign(new Error("authentication failed"), { code: "516" })), "refused"],
  [Object.assign(new Error("cannot parse"), { code: "6" }), "refused"],
  [new StoreUnavailable(Object.assign(new Error("getaddrinfo"), { code: "ENOTFOUND" })), "away"],
  [new StoreUnavailable(Object.assign(new Error("read"), { code: "ECONNRESET" })), "refused"],
  [new StoreUnavailable(Object.assign(new Error("write"), { code: "EPIPE" })), "refused"],
  [
    new StoreUnavailable(Object.assign(new Error("premature"), { code: "ERR_STREAM_PREMATURE_CLOSE" })),
    "refused",
  ],
  [new Error("no password"), "away"],
  [Object.assign(new Error("no file"), { code: "ENOENT" }), "away"],
])("%o is %s", (error, failure) => {
  expect(failureOf(error)).toBe(failure);
});
