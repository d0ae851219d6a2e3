import type { z } from "zod";

/** Every broken rule on one line, each with the path of its field. */
export function describeIssues(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join(".") || "."}: ${message}`).join("; ");
}
