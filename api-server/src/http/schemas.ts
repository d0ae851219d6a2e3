import { z } from "zod";

/** A query parameter that is a whole number. */
export const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^[0-9]{1,10}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.int().min(min).max(max));
