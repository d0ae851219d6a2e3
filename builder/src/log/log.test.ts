import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type LogLine, MAX_LOG_BYTES, MAX_MESSAGE_BYTES, parseLogLine } from "./line.ts";
import { Redactor, type Secrets } from "./redact.ts";
import { Log } from "./writer.ts";

function capture(secrets: Secrets = {}, used = 0) {
  const written: string[] = [];
  const log = new Log({
    step: "build",
    redactor: new Redactor(secrets),
    write: (line) => written.push(line),
    now: () => new Date(0),
    used,
  });
  const lines = (): LogLine[] => written.map((line) => parseLogLine(line) as LogLine);
  return {
    log,
    written,
    lines,
    text: () =>
      lines()
        .map(({ message }) => message)
        .join("\n"),
  };
}

/** Writes the bytes as a program would: in pieces, cut anywhere. */
function pour(log: Log, bytes: Buffer, cuts: readonly number[] = []): void {
  const output = log.output();
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  for (let index = 1; index < places.length; index++) {
    output.push(bytes.subarray(places[index - 1], places[index]));
  }
  output.end();
}

describe("a secret", () => {
  const canary = fc
    .string({ unit: "grapheme", minLength: 8, maxLength: 80 })
    .filter((text) => text.trim().length >= 8);

  // Shows: docs/builds.md#what-hostile-repositories-come-to: prints its variables, also in base64 at any
  test("is nowhere in the log, in whatever form and pieces a program prints it", () => {
    const forms: ((text: string) => string)[] = [
      (text) => text,
      (text) => `token=${text}&`,
      (text) => JSON.stringify({ token: text }),
      (text) => encodeURIComponent(text),
      (text) => new URLSearchParams({ token: text }).toString(),
      (text) => Buffer.from(text).toString("base64"),
      (text) => Buffer.from(`user:${text}`).toString("base64"),
      (text) => Buffer.from(`x${text}\n`).toString("base64url"),
      (text) => Buffer.from(text).toString("hex"),
      (text) => `\u001b[31m${text}\u001b[0m`,
      (text) => `${text}${text}`,
    ];
    fc.assert(
      fc.property(
        fc.array(canary, { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat({ max: 5_000 }), { maxLength: 12 }),
        fc.string({ maxLength: 30 }),
        (secrets, cuts, noise) => {
          const { log, written, text } = capture({ credentials: secrets });
          const printed = secrets.flatMap((secret) =>
            forms.map((form) => `${noise} ${form(secret)} ${noise}`),
          );
          pour(log, Buffer.from(printed.join("\n")), cuts);
          for (const secret of secrets) {
            const looks = [secret, encodeURIComponent(secret), Buffer.from(secret).toString("hex")].filter(
              (look) => !noise.includes(look),
            );
            for (const look of looks) {
              expect(text()).not.toContain(look);
              expect(written.join("")).not.toContain(JSON.stringify(look).slice(1, -1));
            }
            // Whoever decodes what is left finds no secret either.
            for (const word of text().split(/[^A-Za-z0-9+/_-]+/)) {
              expect(Buffer.from(word, "base64").toString("utf8")).not.toContain(secret);
            }
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  test("of several lines is redacted line by line", () => {
    const key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n";
    const { log, text } = capture({ values: [key] });
    pour(log, Buffer.from(`key:\n${key}end`));
    expect(text()).toBe("key:\n***\n***\n***\n***\nend");
  });

  test("is not seen across the parts of a line without end", () => {
    const secret = "hunter2-hunter2";
    const { log, text } = capture({ values: [secret] });
    const line = Buffer.from(`${"x".repeat(300_001)}${secret}${"y".repeat(400_003)}${secret}`);
    pour(
      log,
      line,
      Array.from({ length: 200 }, (_, index) => index * 3_571),
    );
    expect(text()).not.toContain("hunter2");
    expect(text().replaceAll("\n", "").replaceAll("***", "")).toHaveLength(700_004);
  });

  test("that repeats itself without end redacts the whole line", () => {
    const { log, lines } = capture({ values: ["aaaaaa"] });
    pour(log, Buffer.from(`${"a".repeat(900_000)}\nnext`), [300_000, 600_000]);
    expect(lines().map(({ message }) => message)).toEqual(["***", "next"]);
  });

  test("is kept out of the runner's own messages", () => {
    const { log, text } = capture({ credentials: ["s3cr"], values: ["PASSWORD-1"] });
    log.error("cannot log in with PASSWORD-1 and s3cr");
    expect(text()).toBe("cannot log in with *** and ***");
  });
});

test("words and numbers that everybody uses stay", () => {
  const { log, text } = capture({ values: ["production", "8080", "true"] });
  log.info("NODE_ENV=production PORT=8080 true");
  expect(text()).toBe("NODE_ENV=production PORT=8080 true");
});

describe("lines", () => {
  test("are numbered from 1 and carry level, step and time", () => {
    const { log, lines } = capture();
    log.info("one\ntwo");
    log.error("three");
    expect(lines()).toEqual([
      { seq: 1, at: "1970-01-01T00:00:00.000Z", level: "info", step: "build", message: "one" },
      { seq: 2, at: "1970-01-01T00:00:00.000Z", level: "info", step: "build", message: "two" },
      { seq: 3, at: "1970-01-01T00:00:00.000Z", level: "error", step: "build", message: "three" },
    ]);
  });

  test("have no colours, no control characters, and of a progress bar its end alone", () => {
    const { log, text } = capture();
    pour(log, Buffer.from("\u001b[1mbold\u001b[0m\u0007\r\n1%\r2%\r3%\r100%\n\nlast"));
    expect(text()).toBe("bold\n100%\n\nlast");
  });

  test("of any length arrive whole, in messages of 8 KiB at most", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }),
        fc.nat({ max: 900 }),
        (word, times) => {
          const { log, lines } = capture();
          const text = word.repeat(times + 1).replaceAll(/[\p{Cc}]/gu, "");
          log.info(text);
          expect(lines().every(({ message }) => Buffer.byteLength(message) <= MAX_MESSAGE_BYTES)).toBe(true);
          expect(
            lines()
              .map(({ message }) => message)
              .join(""),
          ).toBe(text);
        },
      ),
      { numRuns: 50 },
    );
  });

  test("survive a cut inside a character", () => {
    const { log, text } = capture();
    pour(log, Buffer.from("Füße 🦶\n"), [2, 3, 4, 8, 9, 10, 11]);
    expect(text()).toBe("Füße 🦶");
  });
});

describe("a log that is too long", () => {
  test("is cut once, says so, and still reports how the step ended", () => {
    const { log, lines } = capture();
    pour(log, Buffer.from(`${"x".repeat(1_000)}\n`.repeat(6_000)));
    log.info("left out");
    log.error("The build failed.");
    const total = lines().reduce((sum, { message }) => sum + Buffer.byteLength(message), 0);
    expect(total).toBeLessThanOrEqual(MAX_LOG_BYTES);
    expect(total).toBeGreaterThan(MAX_LOG_BYTES * 0.95);
    expect(lines().filter(({ truncated }) => truncated)).toHaveLength(1);
    expect(lines().at(-2)).toMatchObject({ truncated: true, level: "error" });
    expect(lines().at(-1)).toMatchObject({ level: "error", message: "The build failed." });
    expect(lines().map(({ seq }) => seq)).toEqual(lines().map((_, index) => index + 1));
  });

  test("counts what earlier steps have written", () => {
    const { log, lines } = capture({}, MAX_LOG_BYTES - 1_000);
    pour(log, Buffer.from("more\n"));
    log.error("The build failed.");
    expect(lines().map(({ truncated, message }) => truncated ?? message)).toEqual([
      true,
      "The build failed.",
    ]);
  });
});

test.each([
  "",
  "npm install",
  "{}",
  '{"seq":0}',
  '{"seq":1,"at":"x","level":"info","step":"build","message":"m"}',
])("%j is no line of the runner's", (text) => {
  expect(parseLogLine(text)).toBeUndefined();
});
