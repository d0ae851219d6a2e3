import { beforeEach, describe, expect, it } from "vitest";
import { LastRequests } from "./last-requests.ts";

const KEY = "acme/pshop";

/** What each collector has counted. */
let collectors: Map<string, Record<string, number>>;
let requests: LastRequests;

beforeEach(() => {
  collectors = new Map([["one", {}]]);
  requests = new LastRequests();
});

function readAt(seconds: number, { complete = true, isRead = true } = {}): void {
  requests.add({
    at: seconds * 1_000,
    complete: isRead,
    readings: [...collectors].map(([process, counts]) => ({
      ...{ process, complete, at: seconds * 1_000 },
      counts: new Map(Object.entries(counts)),
    })),
  });
}
const idleAt = (seconds: number) => requests.idleSeconds(KEY, seconds * 1_000);

describe("seconds since the last request", () => {
  it("are unknown before requests were counted, and begin with the first round", () => {
    expect(idleAt(1_000)).toBeUndefined();
    readAt(1_000);
    expect(idleAt(1_005)).toBe(0);
    readAt(1_050);
    expect(idleAt(1_050)).toBe(50);
  });

  it("begin again with a request that any collector has counted", () => {
    collectors.set("two", {});
    readAt(1_000);
    collectors.set("two", { [KEY]: 1 });
    readAt(1_030);
    expect(idleAt(1_030)).toBe(0);
    readAt(1_050);
    expect(idleAt(1_050)).toBe(20);
    collectors.set("one", { [KEY]: 7 });
    readAt(1_060);
    expect(idleAt(1_060)).toBe(0);
  });

  it("do not begin again with requests of others, nor where a count is forgotten", () => {
    collectors.set("one", { [KEY]: 3, "acme/pother": 1 });
    readAt(1_000);
    collectors.set("one", { "acme/pother": 2 });
    readAt(1_050);
    expect(idleAt(1_050)).toBe(50);
    collectors.set("one", { "acme/pother": 2, [KEY]: 1 });
    readAt(1_060);
    expect(idleAt(1_060)).toBe(0);
  });

  it("begin again when a collector has ended, or has begun with requests", () => {
    readAt(1_000);
    collectors.set("two", { [KEY]: 3 });
    readAt(1_050);
    expect(idleAt(1_050)).toBe(0);
    readAt(1_059);
    expect(idleAt(1_059)).toBe(9);
    collectors.delete("one");
    readAt(1_060);
    expect(idleAt(1_060)).toBe(0);
  });

  it.each([
    ["a collector does not answer", { isRead: false }],
    ["one has not counted everything", { complete: false }],
  ])("are unknown while %s, and begin again afterwards", (_, change) => {
    readAt(1_000);
    readAt(1_030, change);
    expect(idleAt(1_030)).toBeUndefined();
    readAt(1_040);
    expect(idleAt(1_040)).toBe(0);
  });

  it("are unknown after a minute without a round, and begin again after it", () => {
    readAt(1_000);
    expect(idleAt(1_060)).toBe(0);
    expect(idleAt(1_061)).toBeUndefined();
    readAt(1_070);
    expect(idleAt(1_070)).toBe(0);
  });
});
