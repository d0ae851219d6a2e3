/** What of the platform matters to databases. */

import { databaseTypes, type EngineName } from "@slipway/crds";
import { parse } from "yaml";
import { z } from "zod";
import type { ApiserverPeer } from "../organizations/cluster-addresses.ts";
import type { Placement } from "../workload/app.ts";

const image = z.strictObject({
  image: z.string().min(1).max(512).describe("Reference, best by digest."),
  uid: z.int().min(1).max(4_294_967_294).describe("User that the container runs as; never root."),
  gid: z.int().min(1).max(4_294_967_294).describe("Its group; volumes are writable for it."),
  engine: z
    .string()
    .min(1)
    .max(32)
    .optional()
    .describe("What really runs, where it is not the engine itself."),
  features: z
    .record(z.string(), z.boolean())
    .default({})
    .describe("What the image lacks or has beyond its contract."),
});
/** An image of one engine and version. Its contract: docs/databases.md. */
export type DatabaseImage = z.output<typeof image>;

const images = z.partialRecord(z.enum(databaseTypes), z.record(z.string(), image));
/** Images by engine and version. */
export type DatabaseImages = z.output<typeof images>;

/** Reads the file that `SLIPWAY_DATABASE_IMAGES_FILE` names. @throws Error that lists what is wrong */
export function parseDatabaseImages(text: string): DatabaseImages {
  const result = images.safeParse(parse(text) ?? {});
  if (!result.success) {
    throw new Error(`no valid list of database images:\n${z.prettifyError(result.error)}`);
  }
  return result.data;
}

/** How clients outside the cluster reach databases. */
export const OUTSIDE_TYPES = ["NodePort", "LoadBalancer", "None"] as const;
export type OutsideType = (typeof OUTSIDE_TYPES)[number];

/** Settings that do not change while the process runs. */
export interface DatabaseConfig {
  outside: {
    type: OutsideType;
    /** Host that node ports are reached at; a load balancer reports its own. */
    host?: string;
  };
  /** Milliseconds that each instance has to serve on another plan, where plans change in the background. */
  planChangeMs: number;
  /** Milliseconds for which the password before a renewal is accepted at the most; 0 where it is not. */
  previousPasswordMs: number;
  /** Where the pods run. */
  pods?: Placement;
  /** Milliseconds that a volume is kept after a live primary without it has had everything. */
  volumeGraceMs: number;
  /** Where pods find the apiserver, in place of the addresses in the cluster. */
  apiserver?: ApiserverPeer;
}

/** All that databases are derived from beside their projects. */
export interface DatabasePlatform extends Omit<DatabaseConfig, "apiserver"> {
  /** Where pods find the apiserver, for engines that keep their state there. */
  apiserver: () => readonly ApiserverPeer[];
  /** Namespace of the operator, whose pods reconcile and sample databases. */
  systemNamespace: string;
  images: () => DatabaseImages;
  /** Version of what new templates are made from; the first one unless given. */
  templateVersion?: number;
}

/** The image of an engine's version; undefined when this platform has none. */
export function imageOf(all: DatabaseImages, engine: EngineName, version: string): DatabaseImage | undefined {
  return all[engine]?.[version];
}
