import { createHash, randomInt } from "node:crypto";

/** Ids of builds: names of their objects, and what the ledger knows them by. */

const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH = 19;

/** What the id of a build looks like: one that the platform made, or the name that `kubectl` gave its object. */
export const BUILD_ID = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** `b` and 98 bits of chance, like the ids of projects. */
export const newBuildId = (): string =>
  `b${Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("")}`;

/** The id of a build that two may ask for, or one twice: it is the same whenever it is asked for with these words. Pure. */
export function buildIdOf(...words: readonly string[]): string {
  let rest = BigInt(`0x${createHash("sha256").update(words.join(" ")).digest("hex")}`);
  let text = "b";
  for (let at = 0; at < LENGTH; at += 1) {
    text += LETTERS[Number(rest % BigInt(LETTERS.length))];
    rest /= BigInt(LETTERS.length);
  }
  return text;
}

/** The build that the creation of a project starts: known by the project's id, so a repeat of the request starts no other. */
export const firstBuildId = (projectId: string): string => buildIdOf("first build of", projectId);
