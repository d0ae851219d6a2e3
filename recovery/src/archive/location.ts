/** Where archives are, as a person or the chart names it. */

import { stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { type BucketSettings, bucketSettings } from "./bucket-settings.ts";
import { directoryStorage } from "./directory.ts";
import { newestName } from "./name.ts";
import type { ArchiveStorage } from "./storage.ts";

/** A folder or a prefix of a bucket, with the name of one archive in it unless the newest one is meant. */
export interface Location {
  storage: ArchiveStorage;
  name?: string;
}

/** `s3://bucket/prefix/` and `s3://bucket/prefix/name.age`. */
const S3 = /^s3:\/\/([^/]+)(?:\/(.*))?$/;

/**
 * @param text `s3://BUCKET[/PREFIX]`, a folder, or one archive: a file, or an object whose key ends in `.age`
 * @param environment with the bucket's endpoint and keys, as `bucket-settings.ts` reads them
 * @throws Error when the variables are not valid
 */
export async function openLocation(text: string, environment: NodeJS.ProcessEnv): Promise<Location> {
  const [, bucket, path = ""] = S3.exec(text) ?? [];
  if (bucket !== undefined) {
    const at = path.endsWith(".age") ? path.lastIndexOf("/") + 1 : path.length;
    const prefix = path.slice(0, at);
    return {
      storage: await openBucket(bucketSettings(bucket, prefix, environment)),
      ...(at < path.length ? { name: path.slice(at) } : {}),
    };
  }
  const isFolder = text.endsWith("/") || ((await stat(text).catch(() => undefined))?.isDirectory() ?? false);
  return isFolder
    ? { storage: directoryStorage(text) }
    : { storage: directoryStorage(dirname(text)), name: basename(text) };
}

/** Loaded only for a bucket: Amazon's SDK takes some 30 MiB. */
async function openBucket(settings: BucketSettings): Promise<ArchiveStorage> {
  const { bucketStorage } = await import("./bucket.ts");
  return bucketStorage(settings);
}

/** The archive that a location names, or its newest one. @throws Error when there is none */
export async function nameIn({ storage, name }: Location): Promise<string> {
  const found = name ?? newestName((await storage.list()).map((archive) => archive.name));
  if (found === undefined) {
    throw new Error(`there is no backup in ${storage.place}`);
  }
  return found;
}
