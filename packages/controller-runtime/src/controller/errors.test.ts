import { expect, it } from "vitest";
import { RetryableError, retriedIn, TerminalError, WaitingError } from "./errors.ts";

const about = { reason: "TooBig", message: "the size is over 5", condition: "Sized" };
const terminal = new TerminalError(about.reason, about.message, { condition: about.condition });
const waiting = (requeueAfterMs: number) =>
  new WaitingError(about.reason, about.message, { condition: about.condition, requeueAfterMs });

it("leaves an error alone when nothing is to come sooner", () => {
  expect(retriedIn(terminal, undefined)).toBe(terminal);
});

it.each([
  ["a terminal error waits", terminal, 300, 300],
  ["a waiting one waits less", waiting(5_000), 300, 300],
  ["a waiting one never waits longer", waiting(200), 300, 200],
])("%s", (_, error, ms, requeueAfterMs) => {
  const retried = retriedIn(error, ms);
  expect(retried).toBeInstanceOf(WaitingError);
  expect(retried).toMatchObject({ ...about, requeueAfterMs });
});

it("leaves unchanged what is retried automatically", () => {
  const error = new RetryableError("ChildConflict", "it belongs to somebody else");
  expect(retriedIn(error, 300)).toBe(error);
});
