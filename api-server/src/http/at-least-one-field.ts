import type { z } from "zod";

/** A body of optional fields of which one is there, which the document says as well. */
export const atLeastOneField = <T extends z.ZodObject>(
  schema: T,
  message = "must have at least one field",
): T => schema.refine((sent) => Object.keys(sent).length > 0, message).meta({ minProperties: 1 });
