import { MAX_LOG_BYTES } from "@slipway/ledger";
import { expect, it } from "vitest";
import { textOf } from "./log.ts";

const line = (text: string) => `2026-03-01T10:00:00.000000001Z ${text}`;

it("the log of a run is what it wrote, to the last character", () => {
  expect(textOf(Buffer.from(`${line("one")}\n${line("")}\n${line("héllo")}\n`))).toBe("one\n\nhéllo\n");
  // The last line has not ended, or never will.
  expect(textOf(Buffer.from(`${line("one")}\n${line("two")}`))).toBe("one\ntwo");
  expect(textOf(Buffer.from(""))).toBe("");
});

// Shows: docs/jobs.md#the-job-its-settings-its-runs: logs: the end, at most 51,200 bytes of UTF-8, no
it("of a long log the end is shown, at most 50 KiB, and no character is cut", () => {
  const text = textOf(Buffer.from(`${line(`a${"€".repeat(60_000)}z`)}\n`));
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_LOG_BYTES);
  expect(Buffer.byteLength(text)).toBeGreaterThan(MAX_LOG_BYTES - 3);
  expect(text).toMatch(/^€+z\n$/);
});
