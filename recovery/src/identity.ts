import { readFile } from "node:fs/promises";

/** The one line of a file that is neither empty nor a comment, as `age-keygen` writes it. @throws Error when there is none */
export async function readIdentity(file: string): Promise<string> {
  const lines = (await readFile(file, "utf8")).split("\n").map((line) => line.trim());
  const keys = lines.filter((line) => line !== "" && !line.startsWith("#"));
  if (keys.length !== 1) {
    throw new Error(`${file} has ${keys.length} keys: it must have one, as age-keygen writes it`);
  }
  return keys[0] ?? "";
}
