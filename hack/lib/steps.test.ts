import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { sideBySide } from "./concurrently.ts";
import { say, step } from "./steps.ts";

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
