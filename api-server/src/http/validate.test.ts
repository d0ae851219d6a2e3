import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Failure, FieldError } from "../errors/failure.ts";
import { refuseQuery, validate } from "./validate.ts";

const refusal = (work: () => unknown): Failure => {
  try {
    work();
  } catch (error) {
    return error as Failure;
  }
  throw new Error("was not refused");
};
const errorsOf = (failure: Failure) => failure.extra.errors as FieldError[];
const keys = (count: number, length = 1) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${index}${"k".repeat(length)}`, 1]));

describe("validate", () => {
  // Shows: docs/applications.md#errors-every-operation: 400 | `VALIDATION_FAILED`, with `errors`: the
  it("names every unknown key, up to a hundred, and how many more there are", () => {
    const all = refusal(() => validate(z.strictObject({}), keys(100), "body"));
    expect(errorsOf(all)).toHaveLength(100);
    expect(errorsOf(all)[99]).toEqual({ field: "99k", message: "unknown field" });
    const cut = refusal(() => validate(z.strictObject({}), keys(1_000), "body"));
    expect(errorsOf(cut)).toHaveLength(101);
    expect(errorsOf(cut)[100]).toEqual({ field: "errors", message: "and 900 more" });
    expect(cut.message).toMatch(/; errors: and 900 more$/);
  });

  it("repeats of a key only its beginning, whole characters of it", () => {
    const [error] = errorsOf(refusal(() => validate(z.strictObject({}), keys(1, 5_000), "body")));
    expect(error?.field).toBe(`0${"k".repeat(99)}…`);
    const rocket = { [`${"k".repeat(99)}🚀`]: 1 };
    const [broken] = errorsOf(refusal(() => validate(z.strictObject({}), rocket, "body")));
    expect(broken?.field.isWellFormed()).toBe(true);
  });

  it("cuts a message that repeats what was sent", () => {
    const schema = z.string().refine(() => false, { error: (issue) => `not ${issue.input}` });
    const [error] = errorsOf(refusal(() => validate(schema, "x".repeat(1_000_000), "body")));
    expect(error?.message).toHaveLength(1_001);
  });

  it("cuts the names of parameters, too", () => {
    const [error] = errorsOf(refusal(() => refuseQuery(keys(1, 5_000))));
    expect(error?.field).toHaveLength(101);
  });
});
