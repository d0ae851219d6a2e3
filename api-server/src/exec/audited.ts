import type { SessionEnd } from "./session.ts";

/**
 * What the audit log has of a session, beside who, when and from where. Its row has no columns for more: what was run follows the
 * operation's name, and what became of it the code, each as JSON. Never what was typed or written.
 */

/** Characters of a command in the audit log. */
const MAX_COMMAND = 4_096;

/** What is run, and where. */
export interface Started {
  instance: string;
  command: readonly string[];
  stdin: boolean;
  tty: boolean;
}

/** `operation` of the row: it begins with the operation's name, and names the command before it runs. Pure. */
export function auditedStart(operationId: string, { command, ...rest }: Started): string {
  let left = MAX_COMMAND;
  const words: string[] = [];
  for (const word of command) {
    words.push(word.length <= left ? word : `${word.slice(0, left).toWellFormed()}…`);
    left -= word.length;
    if (left <= 0) {
      break;
    }
  }
  const omitted = command.length - words.length;
  return `${operationId} ${JSON.stringify({ ...rest, command: words, ...(omitted > 0 ? { omitted_words: omitted } : {}) })}`;
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
