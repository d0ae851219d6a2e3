import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Connections } from "./connections.ts";
import type { Connection } from "./native.ts";

let open: Set<Connection>;
const made = () => {
  const native = {
    CreateConnection: () => {
      const connection = {} as Connection;
      open.add(connection);
      return connection;
    },
    CloseConnection: (connection: Connection) => {
      if (!open.delete(connection)) {
        throw new Error("closed twice");
      }
    },
  };
  return new Connections(native, { path: "/data", limit: 2, settings: {} });
};

beforeEach(() => {
  open = new Set();
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

test("a clean connection serves again, another one is closed", async () => {
  const connections = made();
  const first = await connections.lease();
  first.release(true);
  const second = await connections.lease();
  expect(second.connection).toBe(first.connection);
  second.release(false);
  expect(open.has(second.connection)).toBe(false);
  expect((await connections.lease()).connection).not.toBe(first.connection);
});

test("no more statements run concurrently than allowed, in the order in which they came", async () => {
  const connections = made();
  const [a, b] = [await connections.lease(), await connections.lease()];
  const order: string[] = [];
  const third = connections.lease().then((lease) => {
    order.push("third");
    return lease;
  });
  const fourth = connections.lease().then(() => order.push("fourth"));
  await vi.advanceTimersByTimeAsync(1);
  expect(order).toEqual([]);
  b.release(true);
  await third;
  expect(order).toEqual(["third"]);
  a.release(false);
  await fourth;
  expect(order).toEqual(["third", "fourth"]);
});

test("a session keeps its connection until nobody has asked for long enough", async () => {
  const connections = made();
  const options = { timeoutMs: 1000, mustExist: false };
  const first = await connections.session("u/s", "s", options);
  await expect(connections.session("u/s", "s", options)).rejects.toThrow("Code: 373.");
  first.release(false);
  await vi.advanceTimersByTimeAsync(999);
  const second = await connections.session("u/s", "s", { ...options, mustExist: true });
  expect(second.connection).toBe(first.connection);
  await vi.advanceTimersByTimeAsync(5000);
  second.release(true);
  await vi.advanceTimersByTimeAsync(1001);
  expect(open.has(second.connection)).toBe(false);
  await expect(connections.session("u/s", "s", { ...options, mustExist: true })).rejects.toThrow(
    "Code: 372.",
  );
});
