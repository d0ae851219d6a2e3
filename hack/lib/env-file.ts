import { readFileSync } from "node:fs";

/** Values that need no quotes in a shell; all others are quoted. */
const plain = /^[A-Za-z0-9_@%+=:,./-]*$/;

/** Renders `KEY=VALUE` lines that a POSIX shell can source; keys without a value are left out. */
export function renderEnv(values: Record<string, string | undefined>): string {
  let text = "";
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined) {
      continue;
    }
    if (!/^[A-Z][A-Z0-9_]*$/.test(key)) {
      throw new Error(`not a variable name: ${key}`);
    }
    if (/[\n\r\0]/.test(value)) {
      throw new Error(`the value of ${key} spans lines`);
    }
    text += `${key}=${plain.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`}\n`;
  }
  return text;
}

/** Reads what {@link renderEnv} wrote. Lines that are no assignment are skipped. */
export function parseEnv(text: string): Record<string, string> {
  const values: Record<string, string> = {};
  for (const line of text.split("\n")) {
    const match = /^([A-Z][A-Z0-9_]*)=(.*)$/.exec(line);
    if (!match?.[1]) {
      continue;
    }
    const raw = match[2] ?? "";
    values[match[1]] = raw.startsWith("'") ? raw.slice(1, -1).replaceAll(`'\\''`, "'") : raw;
  }
  return values;
}

/** The values of an environment file; none when there is no such file. */
export function readEnvFile(path: string): Record<string, string> {
  try {
    return parseEnv(readFileSync(path, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return {};
    }
    throw error;
  }
}
