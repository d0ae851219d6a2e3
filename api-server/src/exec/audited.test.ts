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

  it("keeps the first 4,096 characters of a longer one, and says how many words are left out", () => {
    const { command, omitted_words } = read(
      auditedStart("execInstance", { ...started, command: ["x".repeat(4_000), "y".repeat(200), "z", "z"] }),
    );
    expect(command).toEqual(["x".repeat(4_000), `${"y".repeat(96)}…`]);
    expect(omitted_words).toBe(2);
  });

  it("never ends within a character of two units", () => {
    const text = auditedStart("execInstance", { ...started, command: [`${"x".repeat(4_095)}😀`] });
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
