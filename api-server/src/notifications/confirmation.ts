import { randomBytes, randomInt } from "node:crypto";

/** What a recipient of e-mail confirms and unsubscribes with. */

/** Without those that are taken for each other. */
const ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/** A new confirmation code, of 40 bits. */
export function newConfirmationCode(): string {
  const characters = Array.from({ length: 8 }, () => ALPHABET[randomInt(ALPHABET.length)] ?? "");
  return `${characters.slice(0, 4).join("")}-${characters.slice(4).join("")}`;
}

/** A new token of unsubscribe links. */
export const newUnsubscribeToken = (): string => randomBytes(24).toString("base64url");

/** The form of such a token. */
export const UNSUBSCRIBE_TOKEN = /^[A-Za-z0-9_-]{32}$/;
