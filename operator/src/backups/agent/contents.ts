import { createHash } from "node:crypto";
import type { Contents } from "./protocol.ts";

/**
 * Sums up lines of `name<TAB>number`. Names may hold anything but a line feed; the number stands after the last tab. Pure.
 * @throws Error on a line that is none
 */
export function readContents(text: string, counts: "rows" | "keys"): Contents {
  const lines = text
    .split("\n")
    .filter((line) => line !== "")
    .toSorted((a, b) => (a < b ? -1 : 1));
  const total = lines.reduce((sum, line) => {
    const number = /\t([0-9]+)$/.exec(line)?.[1];
    if (number === undefined) {
      throw new Error("a line of the contents has no number");
    }
    return sum + Number(number);
  }, 0);
  const hash = createHash("sha256").update(lines.join("\n")).digest("hex").slice(0, 32);
  return counts === "keys" ? { keys: total, hash } : { tables: lines.length, rows: total, hash };
}
