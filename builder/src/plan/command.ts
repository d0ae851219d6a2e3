/** Commands of clients, quoted so that the Dockerfile holds exactly them. */

import { type BuildSettings, PlanError } from "./input.ts";

/** Longest command that a Dockerfile's line is made from. */
const MAX_COMMAND = 4_096;

/**
 * JSON as an exec form takes it. `<` is escaped, for BuildKit would take `<<` for the beginning of a here-document where it does
 * not see that the line is JSON. Pure.
 */
export function execForm(words: readonly string[]): string {
  return JSON.stringify(words).replaceAll("<", "\\u003c");
}

/** What no command may hold: line ends and control characters, which a Dockerfile or a log would take for its own. */
export function isPlain(text: string): boolean {
  return text.length <= MAX_COMMAND && text.isWellFormed() && !/[\p{Cc}\u2028\u2029]/u.test(text);
}

/** @throws PlanError `BUILD_SETTINGS_INVALID` that names the setting */
export function checkSettings(settings: BuildSettings): void {
  for (const [name, value] of Object.entries(settings)) {
    if (typeof value === "string" && !isPlain(value)) {
      throw new PlanError("BUILD_SETTINGS_INVALID", { name: snake(name) });
    }
  }
}

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** A word that a shell would hand on as it is. */
const LITERAL = /^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*$/;
/** Words that only a shell understands. */
const SHELL_WORDS = new Set(
  `. : [ alias bg break cd command continue eval exec exit export fc fg for function getopts hash if jobs local read readonly
  return set shift source test time times trap type ulimit umask unalias unset until wait while case { ! `
    .split(/\s+/)
    .filter((word) => word !== ""),
);

/**
 * The words of a start command. One of plain words runs without a shell, so that the application gets SIGTERM itself; any other
 * is a shell's. Pure.
 */
export function startWords(command: string): string[] {
  const words = command.trim().split(/ +/);
  const [first = ""] = words;
  const isLiteral =
    words.every((word) => LITERAL.test(word)) && !first.includes("=") && !SHELL_WORDS.has(first);
  return isLiteral ? words : ["/bin/sh", "-c", command];
}

/** The `web` process of a Procfile, undefined when it has none. Pure. */
export function procfileCommand(text: string): string | undefined {
  const command = /^web:[ \t]*(.*\S)[ \t]*$/m.exec(text.replaceAll("\r", ""))?.[1];
  return command !== undefined && isPlain(command) ? command : undefined;
}
