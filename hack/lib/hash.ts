import { createHash } from "node:crypto";

/** A short name for content: the first 16 hex digits of SHA-256 over length-prefixed parts. */
export function contentHash(parts: (string | Buffer)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = Buffer.from(part);
    hash.update(`${bytes.length}:`);
    hash.update(bytes);
  }
  return hash.digest("hex").slice(0, 16);
}

/**
 * The parts of a go.mod that decide what is built: comments, blank lines and order do not.
 * (`// indirect` moves whenever a package of the module imports something new.)
 */
export function normalizeGoMod(text: string): string {
  return text
    .split("\n")
    .map((line) => line.replace(/\/\/.*$/, "").trim())
    .filter((line) => line !== "" && line !== "require (" && line !== ")")
    .map((line) => line.replace(/^require /, ""))
    .sort()
    .join("\n");
}
