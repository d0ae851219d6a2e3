import type { z } from "zod";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";

/** `a.b[0].c`, or what stands for the whole input when the path is empty. */
export function fieldName(path: readonly PropertyKey[], whole: string): string {
  let name = "";
  for (const part of path) {
    if (typeof part === "number") name += `[${part}]`;
    else name += name === "" ? String(part) : `.${String(part)}`;
  }
  return name === "" ? whole : name;
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
  if (names.length === 0) return undefined;
  throw failures.validation(names.map((field) => ({ field, message: "unknown parameter" })));
}

/** @throws Failure 400 that names every broken rule */
export function validate<T>(schema: z.ZodType<T>, value: unknown, whole: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw failures.validation(fieldErrors(result.error, whole));
}
