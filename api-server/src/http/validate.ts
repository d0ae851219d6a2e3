import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";

/** Maximum characters of a client's unknown name in an answer to it. */
const LONGEST_NAME = 100;

/** `a.b[0].c`, or the name of the whole input when the path is empty. Long names are cut. */
export function fieldName(path: readonly PropertyKey[], whole: string): string {
  let name = "";
  for (const part of path) {
    if (typeof part === "number") {
      name += `[${part}]`;
    } else {
      name += name === "" ? shortened(part) : `.${shortened(part)}`;
    }
  }
  return name === "" ? whole : name;
}

function shortened(part: PropertyKey): string {
  const name = String(part);
  return name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME).toWellFormed()}…`;
}

/** Every issue as a field error. Unknown keys become one error each, named by the key. */
export function fieldErrors(error: z.ZodError, whole: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const issue of error.issues) {
    if (issue.code === "unrecognized_keys") {
      for (const key of issue.keys) {
        errors.push({ field: fieldName([...issue.path, key], whole), message: "unknown field" });
      }
    } else {
      errors.push({ field: fieldName(issue.path, whole), message: issue.message });
    }
  }
  return errors;
}

/** For operations without parameters. @throws Failure 400 that names every parameter that was sent */
export function refuseQuery(query: unknown): undefined {
  const names = Object.keys(query as object);
  if (names.length === 0) {
    return undefined;
  }
  throw failures.validation(names.map((name) => ({ field: shortened(name), message: "unknown parameter" })));
}

/** @throws Failure 400 that names every broken rule */
export function validate<T>(schema: z.ZodType<T>, value: unknown, whole: string): T {
  const result = schema.safeParse(value);
  if (result.success) {
    return result.data;
  }
  throw failures.validation(fieldErrors(result.error, whole));
}

/** A query parameter that is a whole number. */
export const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^[0-9]{1,10}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.int().min(min).max(max));

/** A body of optional fields of which at least one is required, also in the document. */
export const atLeastOneField = <T extends z.ZodObject>(
  schema: T,
  message = "must have at least one field",
): T => schema.refine((sent) => Object.keys(sent).length > 0, message).meta({ minProperties: 1 });
