import { expect, test } from "vitest";
import { levelOf } from "./level.ts";

test.each([
  ['{"level":"error","msg":"x"}', "error"],
  ['{"level":30,"time":1,"msg":"x"}', "info"],
  ['{"level":60,"msg":"x"}', "fatal"],
  ['{"severity":"WARNING","message":"x"}', "warn"],
  ['{"log.level":"Debug"}', "debug"],
  ['{"level":"unheard of","severity":"CRITICAL"}', "fatal"],
  ['{"level":1000}', null],
  ['{"level":{"a":1},"levelname":"ERROR"}', "error"],
  ['{"level":{"toString":0}}', null],
  ['{"level":{"toString":0},"severity":"error"}', "error"],
  ['{"level":["error"]}', null],
  ['{"level":true}', null],
  ['{"message":"level=error"}', null],
  ['{"level":"error"', null],
  ['time=2026-11-22T04:42:09Z level=warning msg="x"', "warn"],
  ["ts=1 lvl=eror msg=x", null],
  ['msg="x" level="error"', "error"],
  ["ERROR: no such table", "error"],
  ["ERROR no such table", "error"],
  ["Error: connect ECONNREFUSED", "error"],
  ["error in line 3", null],
  ["Information is free", null],
  ["INFORMATION", "info"],
  ["[error] x", "error"],
  ["[2026-11-22 04:42:09 +0000] [12] [INFO] Booting worker", "info"],
  ["2026-11-22 04:42:09,123 WARNING  django: x", "warn"],
  ["2026-11-22T04:42:09.123Z WARN x", "warn"],
  ["\u001b[31mERROR\u001b[0m x", "error"],
  ["E1122 04:42:09.123456       1 main.go:3] x", "error"],
  // Engines.
  ["2026-11-22 04:42:09.123 UTC [12] FATAL:  password authentication failed for user", "fatal"],
  ["2026-11-22 04:42:09.123 UTC [12] LOG:  checkpoint starting: time", "info"],
  ["2026-11-22  4:42:09 0 [Warning] Aborted connection", "warn"],
  ["2026-11-22  4:42:09 0 [ERROR] mariadbd: x", "error"],
  ["1:M 22 Nov 2026 04:42:09.123 # Server initialized", "warn"],
  ["1:M 22 Nov 2026 04:42:09.123 * Ready", "info"],
  ["2026.11.22 04:42:09.123456 [ 1 ] {} <Error> x: y", "error"],
  ["2026.11.22 04:42:09.123456 [ 1 ] {ab-c} <Information> x", "info"],
  ['127.0.0.1 - - [22/Nov/2026] "GET / HTTP/1.1" 200', null],
  ["", null],
  ["é", null],
  ["null", null],
])("%j is %s", (line, level) => {
  expect(levelOf(line)).toBe(level);
});

test("a level that is nested as deep as a line is long is none", () => {
  const depth = 8_000;
  expect(levelOf(`{"level":${"[".repeat(depth)}${"]".repeat(depth)}}`)).toBe(null);
  expect(levelOf(`{"level":${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}}`)).toBe(null);
});

test("a line that is made for it takes no longer than another", () => {
  for (const piece of ["[a] ", "1", "{a} ", "[", " level=", "(a) ", "ERROR"]) {
    const line = piece.repeat(16 * 1024);
    const began = performance.now();
    levelOf(line);
    expect(performance.now() - began, piece).toBeLessThan(100);
  }
});
