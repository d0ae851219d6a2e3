import { expect, test } from "vitest";
import { GiveUp, waitFor } from "./wait.ts";

test("answers the first thing that is neither undefined nor false", async () => {
  const answers = [undefined, false, 0];
  expect(
    await waitFor<number>("a number", 1_000, async () => answers.shift() as number | undefined | false, 1),
  ).toBe(0);
});

test("what is thrown means not yet, and is named when time runs out", async () => {
  const never = () => Promise.reject(new Error("connection refused"));
  await expect(waitFor("the server", 20, never, 5)).rejects.toThrow(
    "the server: not within 0 s (connection refused)",
  );
});

test("giving up ends it immediately", async () => {
  const hopeless = () => Promise.reject(new GiveUp("it ended"));
  await expect(waitFor("the server", 60_000, hopeless)).rejects.toThrow("the server: it ended");
});
