import { databaseTypes, type EngineName, type versionsOfType } from "@slipway/crds";
import { type BuiltImage, buildImage, type ImageRecipe, identifyImage } from "./build.ts";
import { clickhouse, clickhouseUser } from "./clickhouse.ts";
import { mariadb, mariadbUser } from "./mariadb.ts";
import { postgresql, postgresqlUser } from "./postgresql.ts";
import { valkey, valkeyUser } from "./valkey.ts";

/** An image that one version of an engine runs from. */
export interface DatabaseImageSource {
  engine: EngineName;
  /** As projects name it. */
  version: string;
  /** Whether a stack has it that has one version of each engine. */
  isDefault: boolean;
  /** What its containers run as; docs/databases.md. */
  uid: number;
  gid: number;
  /** What really runs, where it is not the engine itself. */
  runs?: string;
  /** What it lacks of its contract. */
  features?: Record<string, boolean>;
  /** Builds it, or finds it in the cache. */
  build: () => Promise<BuiltImage>;
  /** Under which it is built, known before it is. */
  reference: () => Promise<string>;
}

/** Which engines' images a stack has: of every engine one version, all versions, or none. */
export type DatabaseSelection = "default" | "all" | "none";

/** The version of each engine in a stack that has one of each. */
const defaultVersions: Record<EngineName, string> = {
  postgresql: "17",
  mariadb: "11",
  clickhouse: "26.8.6.5",
  valkey: "9.1.1",
};

type Source = Omit<DatabaseImageSource, "engine" | "version" | "isDefault">;
const sources: { [Engine in EngineName]: Record<(typeof versionsOfType)[Engine][number], Source> } = {
  postgresql: {
    "15": image(postgresqlUser, () => postgresql("15")),
    "16": image(postgresqlUser, () => postgresql("16")),
    "17": image(postgresqlUser, () => postgresql("17")),
    "18": image(postgresqlUser, () => postgresql("18")),
  },
  mariadb: {
    "10": image(mariadbUser, () => mariadb("10")),
    "11": image(mariadbUser, () => mariadb("11")),
  },
  clickhouse: {
    "26.8.6.5": { ...image(clickhouseUser, clickhouse), runs: "chdb", features: { replication: false } },
  },
  valkey: { "9.1.1": image(valkeyUser, valkey) },
};

function image(user: number, recipe: () => ImageRecipe | Promise<ImageRecipe>): Source {
  return {
    uid: user,
    gid: user,
    build: async () => buildImage(await recipe()),
    reference: async () => (await identifyImage(await recipe())).reference,
  };
}

/** The images of the engines that a stack is to have. */
export function databaseImages(selection: DatabaseSelection): DatabaseImageSource[] {
  const all = databaseTypes.flatMap((engine) =>
    Object.entries<Source>(sources[engine]).map(([version, source]) => ({
      engine,
      version,
      isDefault: version === defaultVersions[engine],
      ...source,
    })),
  );
  return all.filter(({ isDefault }) => selection === "all" || (selection === "default" && isDefault));
}

/** An image as the chart's values name it. */
interface DatabaseImageValue {
  image: string;
  uid: number;
  gid: number;
  engine?: string;
  features?: Record<string, boolean>;
}

/**
 * The chart's `databases.images` for images that were delivered.
 * @param delivered every source with the reference under which the nodes have or pull it
 */
export function databaseImageValues(
  delivered: { source: Omit<DatabaseImageSource, "build" | "reference" | "isDefault">; reference: string }[],
): Record<string, Record<string, DatabaseImageValue>> {
  const values: ReturnType<typeof databaseImageValues> = {};
  for (const { source, reference } of delivered) {
    const { engine, version, uid, gid, runs, features } = source;
    values[engine] ??= {};
    values[engine][version] = {
      image: reference,
      uid,
      gid,
      ...(runs ? { engine: runs } : {}),
      ...(features ? { features } : {}),
    };
  }
  return values;
}

/** `databases.images` of the chart: by engine and version. */
export type DatabaseValues = ReturnType<typeof databaseImageValues>;
