import { describe, expect, it } from "vitest";
import { isRefusedRow, recordInParts } from "./refused-rows.ts";

const failure = (code: string) => Object.assign(new Error("a row"), { code });

describe("a batch with a refused row", () => {
  it("is recorded without it, in its order, with a pause before each part", async () => {
    const recorded: number[] = [];
    let calls = 0;
    let pauses = 0;
    const results = await recordInParts([1, 2, 3, 4, 5, 6, 7, 8], {
      record: async (part) => {
        calls += 1;
        if (part.includes(6)) {
          throw failure("23514");
        }
        recorded.push(...part);
        return part.join();
      },
      refused: (one, { code }) => `${one} is refused: ${code}`,
      pause: async () => {
        pauses += 1;
      },
    });
    expect(results).toEqual(["1,2,3,4", "5", "6 is refused: 23514", "7,8"]);
    expect(recorded).toEqual([1, 2, 3, 4, 5, 7, 8]);
    expect([calls, pauses]).toEqual([7, 6]);
  });

  // Shows: docs/billing.md#metering: is sent again in halves
  it.each(["57014", "55P03"])(
    "that takes longer than a statement may (%s) is recorded in halves, without those that do alone",
    async (code) => {
      const sizes: number[] = [];
      const record = async (part: readonly number[]) => {
        sizes.push(part.length);
        if (part.length > 4 || part.includes(3)) {
          throw failure(code);
        }
        return part.join();
      };
      const options = { record, refused: () => "refused", tooSlow: (one: number) => `${one} is slow` };
      const results = await recordInParts([1, 2, 3, 4, 5, 6, 7, 8], options);
      expect(results).toEqual(["1,2", "3 is slow", "4", "5,6,7,8"]);
      expect(sizes).toEqual([8, 4, 2, 2, 1, 1, 4]);
    },
  );

  it("that takes too long fails with few statements where all parts do, and with the first where none is expected to", async () => {
    const batch = Array.from({ length: 512 }, (_, index) => index);
    let calls = 0;
    const record = async () => {
      calls += 1;
      throw failure("57014");
    };
    const slow: number[] = [];
    const options = { record, refused: () => 0 };
    await expect(
      recordInParts(batch, { ...options, tooSlow: (one) => slow.push(one) }),
    ).rejects.toMatchObject({ code: "57014" });
    expect([calls, slow]).toEqual([13, [0, 1]]);
    calls = 0;
    await expect(recordInParts(batch, options)).rejects.toMatchObject({ code: "57014" });
    expect(calls).toBe(1);
  });

  it("fails with any other error, and is not divided then", async () => {
    let calls = 0;
    const record = async () => {
      calls += 1;
      throw failure("57P01");
    };
    await expect(recordInParts([1, 2], { record, refused: () => 0 })).rejects.toThrow("a row");
    expect(calls).toBe(1);
  });
});

it.each([
  [failure("22003"), true],
  [failure("23505"), true],
  [failure("40001"), false],
  [new Error("away"), false],
  [{ code: "23505" }, false],
])("of %o it says whether the row was refused: %s", (error, isRefused) => {
  expect(isRefusedRow(error)).toBe(isRefused);
});
