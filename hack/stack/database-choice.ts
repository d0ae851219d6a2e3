import type { DatabaseImageSource } from "../images/databases.ts";
import { UserError } from "../lib/steps.ts";

/** What `--databases` selects: one version of each engine, all, none, or those of a list. */
export type DatabaseChoice = "default" | "all" | "none" | string[];

/** `engine:version`, as in the list of `--databases`. */
export const imageKey = ({ engine, version }: { engine: string; version: string }) => `${engine}:${version}`;

/** Reads the value of `--databases`. */
export function parseDatabaseChoice(text: string): DatabaseChoice {
  return text === "default" || text === "all" || text === "none"
    ? text
    : text.split(",").map((one) => one.trim());
}

/**
 * The images that a stack is to have: those that are requested, and those that it offers already, since databases may run
 * from them.
 * @param images all that there are
 * @param offered keys of what the stack offers now
 * @throws UserError naming what is requested and no image, with those that are
 */
export function chosenImages(
  choice: DatabaseChoice,
  images: readonly DatabaseImageSource[],
  offered: readonly string[] = [],
): DatabaseImageSource[] {
  const unknown = Array.isArray(choice)
    ? choice.find((one) => !images.some((image) => imageKey(image) === one))
    : undefined;
  if (unknown !== undefined) {
    const known = images.map(imageKey).join(", ");
    throw new UserError(
      `--databases has no ${unknown || "empty entry"}; it is default, all, none, or a list of ${known}`,
    );
  }
  const isRequested = (image: DatabaseImageSource): boolean =>
    Array.isArray(choice)
      ? choice.includes(imageKey(image))
      : choice === "all" || (choice === "default" && image.isDefault);
  return images.filter((image) => isRequested(image) || offered.includes(imageKey(image)));
}
