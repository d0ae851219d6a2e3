import { expect, test } from "vitest";
import { createLogger } from "./logger.ts";

function logged(level: string, write: (logger: ReturnType<typeof createLogger>) => void) {
  const lines: string[] = [];
  write(createLogger("test", level, { write: (line: string) => void lines.push(line) }));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

test("a line has the component, the level by name and the time", () => {
  const [line] = logged("info", (logger) => logger.info({ port: 80 }, "serving"));
  expect(line).toEqual({
    component: "test",
    level: "info",
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    port: 80,
    msg: "serving",
  });
});

test("lines below the level are not written", () => {
  expect(logged("warn", (logger) => logger.info("serving"))).toEqual([]);
});

test("secrets are redacted up to three levels deep, and what libraries attach to errors", () => {
  const err = Object.assign(new Error("refused"), { config: { url: "https://user:pass@host" } });
  const [line] = logged("info", (logger) =>
    logger.info(
      {
        token: "s3cr3t",
        request: { headers: { "x-api-key": "s3cr3t", authorization: "s3cr3t" } },
        object: { stringData: { a: "s3cr3t" } },
        err,
      },
      "sent",
    ),
  );
  expect(line).toMatchObject({
    token: "[redacted]",
    request: { headers: { "x-api-key": "[redacted]", authorization: "[redacted]" } },
    object: { stringData: "[redacted]" },
    err: { message: "refused", config: "[redacted]" },
  });
});
