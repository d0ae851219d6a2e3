import type { SessionEnd } from "./session.ts";

/**
 * What the audit log has of a session, beside who, when and from where. Its row has no columns for more: what was run follows the
 * operation's name, and what became of it the code, each as JSON. Never what was typed or written.
 */

/** What is run, and where. */
export interface Started {
  instance: string;
  command: readonly string[];
  stdin: boolean;
  tty: boolean;
}

/**
 * `operation` of the row: it begins with the operation's name, and names the whole command before it runs, which its route has bounded.
 * Pure.
 */
export function auditedStart(operationId: string, { command, ...rest }: Started): string {
  return `${operationId} ${JSON.stringify({ ...rest, command })}`;
}

/** `code` of the row: why it ended, and how much went through it. The row's own times say how long it took. Pure. */
export function auditedEnd({ code, exitCode, stdinBytes, stdoutBytes, stderrBytes }: SessionEnd): string {
  const about = {
    exit_code: exitCode ?? null,
    stdin_bytes: stdinBytes,
    stdout_bytes: stdoutBytes,
    stderr_bytes: stderrBytes,
  };
  return `${code} ${JSON.stringify(about)}`;
}
