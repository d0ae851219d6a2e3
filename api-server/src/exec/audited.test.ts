import { describe, expect, it } from "vitest";
import { auditedEnd, auditedStart } from "./audited.ts";

const started = { instance: "shop-0", stdin: true, tty: false };
const read = (text: string) => JSON.parse(text.replace(/^execInstance /, ""));

describe("auditedStart", () => {
  it("names a command by its words, as they are", () => {
    const command = ["sh", "-c", 'echo "a\u0000b"; ✓', ""];
    const text = auditedStart("execInstance", { ...started, command });
    expect(read(text)).toEqual({ ...started, command });
    // PostgreSQL's text takes no NUL.
    expect(text).not.toContain("\u0000");
  });

  it("keeps all of the longest command", () => {
    const command = ["x".repeat(4_000), "y".repeat(4_191), "😀".slice(0, 1)];
    const text = auditedStart("execInstance", { ...started, command });
    expect(read(text).command).toEqual(command);
    // PostgreSQL's text takes no half of a character.
    expect(text.isWellFormed()).toBe(true);
  });
});

it("auditedEnd has why it ended, and how much passed", () => {
  const end = {
    code: "EXEC_IDLE",
    exitCode: undefined,
    stdinBytes: 1,
    stdoutBytes: 2,
    stderrBytes: 3,
  } as const;
  expect(auditedEnd(end)).toBe(
    'EXEC_IDLE {"exit_code":null,"stdin_bytes":1,"stdout_bytes":2,"stderr_bytes":3}',
  );
});
