import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { S3Credentials } from "./s3.ts";

/** Reads the keys of a bucket from the files of a mounted Secret, each time: it may have changed. */
export function mountedCredentials(folder: string | undefined): () => S3Credentials | undefined {
  if (folder === undefined) {
    return () => undefined;
  }
  const read = (name: string) => readFileSync(join(folder, name), "utf8").trim();
  return () => ({ accessKeyId: read("accessKeyId"), secretAccessKey: read("secretAccessKey") });
}
