import { type DatabaseImageSource, databaseImages } from "../images/databases.ts";
import { UserError } from "../lib/steps.ts";

/** What `--databases` selects: one version of each engine, all, none, or those of a list. */
export type DatabaseChoice = "default" | "all" | "none" | string[];

/** `engine:version`, as in the list of `--databases`. */
export const imageKey = ({ engine, version }: { engine: string; version: string }) => `${engine}:${version}`;

/**
 * Reads the value of `--databases`.
 * @throws UserError naming what is no image, with those that are
 */
export function parseDatabaseChoice(text: string): DatabaseChoice {
  if (text === "default" || text === "all" || text === "none") {
    return text;
  }
  const known = databaseImages("all").map(imageKey);
  const requested = text.split(",").map((one) => one.trim());
  const unknown = requested.find((one) => !known.includes(one));
  if (unknown !== undefined) {
    throw new UserError(
      `--databases has no ${unknown || "empty entry"}; it is default, all, none, or a list of ${known.join(", ")}`,
    );
  }
  return requested;
}

/**
 * The images that a stack is to have: those that are requested, and those that it offers already, since databases may run
 * from them.
 * @param offered keys of what the stack offers now
 */
export function chosenImages(choice: DatabaseChoice, offered: readonly string[]): DatabaseImageSource[] {
  const requested = Array.isArray(choice) ? choice : databaseImages(choice).map(imageKey);
  return databaseImages("all").filter((image) => [...requested, ...offered].includes(imageKey(image)));
}
