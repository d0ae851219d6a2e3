import { parse } from "yaml";
import { z } from "zod";
import { type Catalog, catalogFields } from "./catalog.ts";
import { catalogProblems } from "./catalog-problems.ts";

/** The whole file. */
export const catalog = catalogFields.superRefine((all, context) => {
  for (const { path, message } of catalogProblems(all)) {
    context.addIssue({ code: "custom", path, message });
  }
});

/** The catalog that a YAML text is. @throws Error that lists every broken rule */
export function parseCatalog(text: string): Catalog {
  const result = catalog.safeParse(parse(text));
  if (!result.success) {
    throw new Error(`no valid plan catalog:\n${z.prettifyError(result.error)}`);
  }
  return result.data;
}
