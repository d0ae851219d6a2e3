import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { say, sideBySide, step } from "./steps.ts";

let lines: string[];
beforeEach(() => {
  lines = [];
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    lines.push(String(text).replace(/\d+\.\d s/, "N s"));
    return true;
  });
});
afterEach(() => void vi.restoreAllMocks());

test("the lines of a step are indented under it", async () => {
  await step("outer", async () => {
    await step("inner", async () => say("a line"));
  });
  expect(lines.join("")).toBe(
    "==> outer\n    ==> inner\n        a line\n        done in N s\n    done in N s\n",
  );
});

test("lines name their step while another one runs beside it", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await sideBySide(
    () => step("short", async () => say("a line")),
    async () => {
      const long = step("long", () => promise);
      await Promise.resolve();
      setTimeout(resolve, 20);
      await long;
    },
  );
  expect(lines.slice(-1)).toEqual(["    done in N s\n"]);
  expect(lines).toContain("    short: done in N s\n");
});

test("what runs beside a part that fails is awaited before the failure is thrown", async () => {
  let isDone = false;
  const failing = () => Promise.reject(new Error("no"));
  const other = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    isDone = true;
  };
  await expect(sideBySide(failing, other)).rejects.toThrow("no");
  expect(isDone).toBe(true);
  await expect(sideBySide(other, failing)).rejects.toThrow("no");
});
