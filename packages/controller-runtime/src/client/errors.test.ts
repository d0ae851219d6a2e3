import { expect, it, vi } from "vitest";
import { isUnbound, KubeError, onceBound } from "./errors.ts";

const forbidden = (message: string) => new KubeError({ status: 403, reason: "Forbidden", message });
const unbound = forbidden(
  'secrets is forbidden: User "system:serviceaccount:demo-system:demo" cannot create resource "secrets" in API group "" in the namespace "demo"',
);

it.each([
  [unbound, true],
  [forbidden('secrets "p1-env" is forbidden: exceeded quota: demo, requested: count/secrets=1'), false],
  [
    forbidden(
      'projects "p1" is forbidden: unable to create new content in namespace x because it is being terminated',
    ),
    false,
  ],
  [new KubeError({ status: 409, reason: "Conflict", message: 'cannot update resource "x"' }), false],
  [new Error("else"), false],
])("%s: a right is missing: %s", (error, is) => {
  expect(isUnbound(error)).toBe(is);
});

it("what is refused for a missing right is done again, and nothing else", async () => {
  const refusals = [unbound, unbound];
  const work = vi.fn(async () => {
    const refusal = refusals.shift();
    if (refusal) {
      throw refusal;
    }
    return "done";
  });
  expect(await onceBound(work)).toBe("done");
  expect(work).toHaveBeenCalledTimes(3);
  const other = vi.fn(async () => {
    throw forbidden("exceeded quota");
  });
  await expect(onceBound(other)).rejects.toThrow("exceeded quota");
  expect(other).toHaveBeenCalledTimes(1);
});
