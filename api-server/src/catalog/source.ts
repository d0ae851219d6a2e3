import { type Catalog, catalog } from "@slipway/crds";
import type { Logger } from "pino";
import { parse } from "yaml";
import { ReloadedFile } from "./file.ts";

/** The plan catalog in force. */
export interface CatalogSource {
  readonly current: Catalog;
}

/** @throws Error that names every broken rule of the file */
export function parseCatalog(text: string): Catalog {
  const result = catalog.safeParse(parse(text));
  if (result.success) return result.data;
  const lines = result.error.issues.map((issue) => `  ${issue.path.join(".")}: ${issue.message}`);
  throw new Error(`the plan catalog is not valid:\n${lines.join("\n")}`);
}

/** Opens `SLIPWAY_CATALOG_FILE`. @throws Error when it cannot be read or is not valid */
export function openCatalog(file: string, logger: Logger): Promise<ReloadedFile<Catalog>> {
  return ReloadedFile.open(file, parseCatalog, logger);
}
