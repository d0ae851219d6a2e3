import { z } from "zod";

/** Most bytes of UTF-8 of all words together of a command that an object may have several of. */
export const COMMAND_MAX_BYTES = 4_096;

const encoder = new TextEncoder();
/** Whether a command is no longer than that. */
export const isCommandShort = (command: readonly string[]): boolean =>
  command.reduce((sum, word) => sum + encoder.encode(word).length, 0) <= COMMAND_MAX_BYTES;

/** CEL for the same of a field that is there. */
export const celCommandShort = (field: string): string =>
  `self.${field}.map(word, bytes(word).size()).sum() <= ${COMMAND_MAX_BYTES}`;

/** The words of a command, each of them taken literally. */
export const words = (about: string) =>
  z.array(z.string().max(1024)).max(64).meta({ "x-kubernetes-list-type": "atomic" }).describe(about);
