import { databaseTypes, type EngineName, isDatabaseType, type ProjectType } from "@slipway/crds";
import { parse } from "yaml";
import { z } from "zod";

/** The types of project that the operator supports. Creation of any other answers 503 PROJECT_TYPE_UNAVAILABLE. */
export const supportedTypes: readonly ProjectType[] = [
  "http",
  "worker",
  "job",
  "postgresql",
  "mariadb",
  "valkey",
  "clickhouse",
];

/** Whether projects of a type can be created; of a database, with this version and this many instances, where given. */
export type Supports = (type: ProjectType, version?: string, instances?: number) => boolean;

/** A database is supported where the platform has an image of it. */
export function supports(types: readonly ProjectType[], images: () => DatabaseVersions): Supports {
  return (type, version, instances = 1) => {
    if (!types.includes(type) || !isDatabaseType(type)) {
      return types.includes(type);
    }
    const versions = images()[type] ?? {};
    if (version === undefined) {
      return Object.keys(versions).length > 0;
    }
    const found = versions[version];
    return found !== undefined && (instances === 1 || !found.single);
  };
}

/** What projects of a version may be. */
export interface DatabaseVersion {
  /** Its instances cannot replicate, so there is one alone: an engine's substitute may lack replication. */
  single: boolean;
}

/** Versions of each engine that the platform has an image of. */
export type DatabaseVersions = Readonly<
  Partial<Record<EngineName, Readonly<Record<string, DatabaseVersion>>>>
>;

// What an image is concerns the operator alone.
const image = z.object({ features: z.object({ replication: z.boolean().default(true) }).prefault({}) });
const images = z.partialRecord(z.enum(databaseTypes), z.record(z.string(), image));

/** Reads the file that `SLIPWAY_DATABASE_IMAGES_FILE` names. @throws Error that lists what is wrong */
export function parseDatabaseVersions(text: string): DatabaseVersions {
  const result = images.safeParse(parse(text) ?? {});
  if (!result.success) {
    throw new Error(`no valid list of database images:\n${z.prettifyError(result.error)}`);
  }
  return Object.fromEntries(
    Object.entries(result.data).map(([engine, versions]) => [
      engine,
      Object.fromEntries(
        Object.entries(versions).map(([version, { features }]) => [
          version,
          { single: !features.replication },
        ]),
      ),
    ]),
  );
}
