import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { RequestsUnderWay } from "./requests-under-way.ts";

const connection = (destroyed = false) => Object.assign(new EventEmitter(), { destroyed });
const request = (socket = connection()) => ({ socket }) as unknown as IncomingMessage;

describe("requests under way", () => {
  it("are limited for each address, and give their place back once", () => {
    const underWay = new RequestsUnderWay({ requests: 10, requestsPerAddress: 2 });
    const first = request();
    expect(underWay.tryBegin(first, "a")).toBe(true);
    expect(underWay.tryBegin(request(), "a")).toBe(true);
    const refused = request();
    expect(underWay.tryBegin(refused, "a")).toBe(false);
    expect(underWay.tryBegin(request(), "b")).toBe(true);
    // A refused one is answered, too.
    underWay.end(refused);
    expect([underWay.total, underWay.tryBegin(request(), "a")]).toEqual([3, false]);
    underWay.end(first);
    underWay.end(first);
    expect(underWay.total).toBe(2);
    expect([underWay.tryBegin(request(), "a"), underWay.tryBegin(request(), "a")]).toEqual([true, false]);
  });

  it("are limited for the process", () => {
    const underWay = new RequestsUnderWay({ requests: 2, requestsPerAddress: 2 });
    expect(["a", "b", "c"].map((address) => underWay.tryBegin(request(), address))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("end with their connection, also those behind another, each for its own address", () => {
    const underWay = new RequestsUnderWay({ requests: 10, requestsPerAddress: 1 });
    const proxy = connection();
    const [first, second] = [request(proxy), request(proxy)];
    expect([underWay.tryBegin(first, "a"), underWay.tryBegin(second, "b")]).toEqual([true, true]);
    underWay.end(second);
    expect([underWay.tryBegin(request(), "b"), underWay.tryBegin(request(), "a")]).toEqual([true, false]);
    proxy.emit("close");
    underWay.end(first);
    expect([underWay.total, underWay.tryBegin(request(), "a")]).toEqual([1, true]);
  });

  it("listen for the end of a connection once, however many it has", () => {
    const underWay = new RequestsUnderWay({ requests: 10, requestsPerAddress: 10 });
    const socket = connection();
    for (let index = 0; index < 5; index += 1) {
      const one = request(socket);
      underWay.tryBegin(one, "a");
      underWay.end(one);
    }
    expect([underWay.total, socket.listenerCount("close")]).toEqual([0, 1]);
  });

  it("are not counted on a connection that has already broken", () => {
    const underWay = new RequestsUnderWay({ requests: 1, requestsPerAddress: 1 });
    expect([underWay.tryBegin(request(connection(true)), "a"), underWay.total]).toEqual([true, 0]);
  });
});
