import { afterEach, beforeEach, expect, test } from "vitest";
import { CollectorSink } from "./collector-sink.ts";

let sink: CollectorSink;

beforeEach(async () => {
  sink = await CollectorSink.start();
});
afterEach(() => sink.stop());

/** @returns the status; undefined when no answer came */
async function send(numbers: readonly number[], token?: string): Promise<number | undefined> {
  const body = numbers
    .map((number) => `["/orders/0b6c/items/${number}","/orders/:uuid/items/:number"]`)
    .join("\n");
  const query = token === undefined ? "" : `?insert_deduplication_token=${token}`;
  const answer = await fetch(`${sink.url}/${query}`, { method: "POST", body }).catch(() => undefined);
  return answer?.status;
}

test("a batch that is sent again is taken twice and counted once, by its token or by its bytes", async () => {
  for (const token of ["one", "one", undefined, undefined]) {
    expect(await send([7, 8], token)).toBe(200);
  }
  expect(sink.of(7)).toEqual({ taken: 4, counted: 2 });
  expect(await send([8, 9])).toBe(200);
  expect(sink.of(8)).toEqual({ taken: 5, counted: 3 });
  expect(sink.of(9)).toEqual({ taken: 1, counted: 1 });
  expect(sink.of(10)).toEqual({ taken: 0, counted: 0 });
  expect(sink.size).toBe(3);
  expect(sink.changed).toBe(0);
  await send([10], "one");
  expect(sink.changed).toBe(1);
});

test("each fault takes the batch or not, and answers or not", async () => {
  sink.mood = "away";
  expect(await send([1])).toBe(undefined);
  sink.mood = "busy";
  expect(await send([2])).toBe(503);
  sink.mood = "silent";
  expect(await send([3])).toBe(undefined);
  sink.mood = "hanging";
  const sent = send([4]);
  await expect.poll(() => sink.of(4).taken).toBe(1);
  sink.mood = "well";
  expect(await sent).toBe(undefined);
  expect([1, 2, 3, 4].map((number) => sink.of(number).taken)).toEqual([0, 0, 1, 1]);
});
