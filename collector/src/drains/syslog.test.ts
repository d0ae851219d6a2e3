import { expect, test } from "vitest";
import { outgoing } from "../../../test/kit/drains/lines.ts";
import { frames, MESSAGE_BYTES, messages } from "./syslog.ts";

const DATA = 'organization="o1" project="p1" instance="shop-1" container="app" uid="0123456789abcdef-7"';

// Shows: docs/log-drains.md#syslog: RFC 5424
test("a line is a message of RFC 5424", () => {
  expect(messages(outgoing({ level: "error", text: "failed: [x]" }))).toEqual([
    `<11>1 2026-11-28T23:00:00.123456Z shop-1 Shop app stdout [slipway@32473 ${DATA}] failed: [x]`,
  ]);
});

test.each([
  ["trace", 15],
  ["debug", 15],
  ["info", 14],
  [null, 14],
  ["warn", 12],
  ["error", 11],
  ["fatal", 10],
] as const)("the level %s has the priority %i", (level, priority) => {
  expect(messages(outgoing({ level }))[0]).toMatch(new RegExp(`^<${priority}>1 `));
});

test("text that is more than ASCII is marked as UTF-8, and no other", () => {
  expect(messages(outgoing({ text: "✓" }))[0]).toMatch(/\] \uFEFF✓$/);
  expect(messages(outgoing({ text: "ok" }))[0]).toMatch(/\] ok$/);
});

test("line breaks and other control characters are escaped, and tabs stay", () => {
  expect(messages(outgoing({ text: "a\nb\r\0c\td" }))[0]).toMatch(/\] a#012b#015#000c\td$/);
});

test("fields of the header are printable ASCII without blanks, and values of structured data are escaped", () => {
  const [message] = messages(
    outgoing({ projectName: "Mein Lädchen ☕", container: "", instance: 'a"b]c\\d' }),
  );
  expect(message).toContain(' a"b]c\\d Mein_L_dchen_ - stdout [');
  expect(message).toContain('instance="a\\"b\\]c\\\\d"');
  expect(messages(outgoing({ projectName: "x".repeat(60) }))[0]).toContain(` ${"x".repeat(48)} `);
});

test("a line that is longer than a message is several, between characters, of which all but the last continue", () => {
  const text = `${"€".repeat(5_000)}end`;
  const all = messages(outgoing({ text }));
  expect(all.length).toBeGreaterThan(1);
  expect(all.every((message) => Buffer.byteLength(message) <= MESSAGE_BYTES)).toBe(true);
  expect(all.map((message) => message.includes('continues="true"'))).toEqual([
    ...all.slice(1).map(() => true),
    false,
  ]);
  expect(all.map((message) => message.replace(/^.*?\] \uFEFF?/, "")).join("")).toBe(text);
});

// Shows: docs/log-drains.md#syslog: octet counting
test("frames count octets, not characters", () => {
  const [one = "", two = ""] = [outgoing({ text: "✓" }), outgoing({ text: "b" })].flatMap(messages);
  const bytes = frames([outgoing({ text: "✓" }), outgoing({ text: "b" })]);
  expect(bytes.toString()).toBe(`${Buffer.byteLength(one)} ${one}${Buffer.byteLength(two)} ${two}`);
  expect(Buffer.byteLength(one)).toBeGreaterThan(one.length);
});
