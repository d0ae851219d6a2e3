import type { FieldError } from "./failure.ts";

/** Broken rules that one answer names; more of them help nobody. */
export const MOST_ERRORS = 100;
/** Characters of a field's name and of a message; both may repeat what the client sent. */
const LONGEST_FIELD = 300;
const LONGEST_MESSAGE = 1_000;

/** The errors as an answer names them: the first ones, long texts cut, and how many more there are. Pure. */
export function shownErrors(errors: readonly FieldError[]): FieldError[] {
  const shown = errors.slice(0, MOST_ERRORS).map((error) => ({
    ...error,
    field: cut(error.field, LONGEST_FIELD),
    message: cut(error.message, LONGEST_MESSAGE),
  }));
  const more = errors.length - shown.length;
  return more === 0 ? shown : [...shown, { field: "errors", message: `and ${more} more` }];
}

const cut = (text: string, longest: number): string =>
  text.length <= longest ? text : `${text.slice(0, longest).toWellFormed()}…`;
