import { z } from "zod";

/** A query parameter that is a whole number. */
export const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^[0-9]{1,10}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.int().min(min).max(max));

/** A body of optional fields of which one is there, which the document says as well. */
export const atLeastOneField = <T extends z.ZodObject>(
  schema: T,
  message = "must have at least one field",
): T => schema.refine((sent) => Object.keys(sent).length > 0, message).meta({ minProperties: 1 });
