import { isDatabaseType, type ProjectType } from "@slipway/crds";
import type { DatabaseVersions } from "../databases/versions.ts";

/** The types of project that the operator supports. Creation of any other answers 503 PROJECT_TYPE_UNAVAILABLE. */
export const supportedTypes: readonly ProjectType[] = [
  "http",
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
