import { EventEmitter } from "node:events";
import type { FastifyReply, FastifyRequest } from "fastify";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RouteConcurrency } from "./route-concurrency.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const SERVED = { status: 200, body: {} };

/** One call of an organization; `taken` is its client's reading of the answer. */
const call = (organizationId: string) => callOf({ principal: { organizationId }, params: {} });

/** A delivery to a connection of an organization. */
const delivery = (hookOrganizationId: string, connectionId: string) =>
  callOf({ hookOrganizationId, params: { connectionId } });

function callOf(caller: object) {
  const raw = new EventEmitter();
  const socket = Object.assign(new EventEmitter(), {
    destroyed: false,
    destroy: () => {
      socket.destroyed = true;
      socket.emit("close");
    },
  });
  const request = { ...caller, ip: "127.0.0.1", raw: { socket } };
  return {
    request: request as unknown as FastifyRequest,
    reply: { raw } as unknown as FastifyReply,
    socket,
    finish: () => raw.emit("finish"),
  };
}

it("serves one organization five calls a second although none is answered for eight seconds", async () => {
  const concurrency = new RouteConcurrency(8);
  const stalled = Date.now() + 8_000;
  const outcomes: Promise<number>[] = [];
  for (let time = 0; time < 50; time += 1) {
    const one = call("acme");
    const work = async () => {
      await new Promise((resolve) => setTimeout(resolve, Math.max(50, stalled - Date.now())));
      return SERVED;
    };
    const outcome = concurrency.run(one.request, one.reply, work).then(({ status }) => {
      one.finish();
      return status;
    });
    outcomes.push(outcome.catch(({ status }: { status: number }) => status));
    await vi.advanceTimersByTimeAsync(200);
  }
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await Promise.all(outcomes)).toEqual(Array(50).fill(200));
});

it("leaves a share to other organizations: their calls begin without waiting", async () => {
  const concurrency = new RouteConcurrency(8);
  for (let time = 0; time < 40; time += 1) {
    const { request, reply } = call("acme");
    void concurrency.run(request, reply, () => new Promise(() => {})).catch(() => undefined);
  }
  const others = call("umbrella");
  expect(await concurrency.run(others.request, others.reply, () => SERVED)).toBe(SERVED);
  await vi.advanceTimersByTimeAsync(10_000);
});

it("counts the deliveries of all connections of an organization together", async () => {
  const concurrency = new RouteConcurrency(8);
  for (let time = 0; time < 40; time += 1) {
    const { request, reply } = delivery("acme", `g${time}`);
    void concurrency.run(request, reply, () => new Promise(() => {})).catch(() => undefined);
  }
  const others = delivery("umbrella", "gother");
  expect(await concurrency.run(others.request, others.reply, () => SERVED)).toBe(SERVED);
  await vi.advanceTimersByTimeAsync(10_000);
});

it("disconnects clients that do not read their answers, past a few of each organization", async () => {
  const concurrency = new RouteConcurrency(8);
  const unread = ["acme", "wayne"].flatMap((organization) =>
    Array.from({ length: 4 }, () => call(organization)),
  );
  for (const { request, reply } of unread) {
    await concurrency.run(request, reply, () => SERVED);
  }
  const others = call("umbrella");
  expect(await concurrency.run(others.request, others.reply, () => SERVED)).toBe(SERVED);
  others.finish();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(unread.map(({ socket }) => socket.destroyed)).toEqual([
    ...[false, false, true, true],
    ...[false, false, true, true],
  ]);
});
