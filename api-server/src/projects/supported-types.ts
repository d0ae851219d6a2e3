import { isDatabaseType, type ProjectType } from "@slipway/crds";
import type { DatabaseVersions } from "../databases/versions.ts";

/**
 * The types of project that the operator carries out. Creation of any other answers 503 PROJECT_TYPE_UNAVAILABLE: the day
 * that an engine works, its type is added here.
 */
export const carriedOutTypes: readonly ProjectType[] = [
  "http",
  "job",
  "postgresql",
  "mariadb",
  "valkey",
  "clickhouse",
];

/**
 * Whether projects of a type, and of a database's version and with so many instances where they are asked for, can be
 * created.
 */
export type CarriesOut = (type: ProjectType, version?: string, instances?: number) => boolean;

/** A database is carried out where the platform has an image of it. */
export function carriesOut(types: readonly ProjectType[], images: () => DatabaseVersions): CarriesOut {
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
