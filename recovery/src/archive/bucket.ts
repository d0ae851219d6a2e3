/** Archives in a bucket of an S3-compatible store, by Amazon's SDK: written in parts, one in memory at a time. */

import { Agent } from "node:https";
import { getCACertificates } from "node:tls";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import type { BucketSettings } from "./bucket-settings.ts";
import { createdAtOf } from "./name.ts";
import { partsOf } from "./parts.ts";
import type { ArchiveStorage, StoredFile } from "./storage.ts";

/** Bytes of a part: as S3 takes 10,000 of them, an archive is at most 156 GiB. */
const PART_BYTES = 16 * 1024 * 1024;
/** Of one request, and of a connection on which nothing is received. */
const TIMEOUT_MS = 120_000;
/** Of a request, by the SDK, with growing delays; and of the reading of one object, whose connection may break. */
const ATTEMPTS = 6;
/** An upload that is so old belongs to nobody who still writes. */
const ABANDONED_MS = 86_400_000;

/** Every method @throws Error of the SDK when the store does not answer or refuses, after some attempts */
export function bucketStorage(settings: BucketSettings): ArchiveStorage {
  const { bucket, prefix } = settings;
  const client = clientOf(settings);
  const object = (name: string) => ({ Bucket: bucket, Key: `${prefix}${name}` });

  async function upload(name: string, bytes: AsyncIterable<Uint8Array>): Promise<number> {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(object(name)));
    const Parts: { PartNumber: number; ETag?: string }[] = [];
    let size = 0;
    try {
      for await (const Body of partsOf(bytes, PART_BYTES)) {
        const PartNumber = Parts.length + 1;
        const { ETag } = await client.send(
          new UploadPartCommand({ ...object(name), UploadId, PartNumber, Body }),
        );
        Parts.push({ PartNumber, ETag });
        size += Body.length;
      }
      const input = { ...object(name), UploadId, MultipartUpload: { Parts } };
      await client.send(new CompleteMultipartUploadCommand(input));
      return size;
    } catch (error) {
      // What matters is the error: an upload that stays is removed a day later.
      await client
        .send(new AbortMultipartUploadCommand({ ...object(name), UploadId }))
        .catch(() => undefined);
      throw error;
    }
  }

  return {
    place: `s3://${bucket}/${prefix}`,
    async list() {
      const found: StoredFile[] = [];
      let next: string | undefined;
      do {
        const input = { Bucket: bucket, Prefix: prefix, Delimiter: "/", ContinuationToken: next };
        const page: ListObjectsV2CommandOutput = await client.send(new ListObjectsV2Command(input));
        for (const { Key = "", Size = 0 } of page.Contents ?? []) {
          found.push({ name: Key.slice(prefix.length), size: Size });
        }
        next = page.IsTruncated === true ? page.NextContinuationToken : undefined;
      } while (next !== undefined);
      return found;
    },
    async write(name, bytes) {
      if (await exists(client, object(name))) {
        throw Object.assign(new Error(`s3://${bucket}/${prefix}${name} exists`), { code: "EEXIST" });
      }
      return upload(name, bytes);
    },
    read: (name) => readObject(client, object(name)),
    async delete(name) {
      await client.send(new DeleteObjectCommand(object(name)));
    },
    async removeUnfinished() {
      const { Uploads = [] } = await client.send(
        new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix }),
      );
      for (const { Key = "", UploadId } of Uploads) {
        const at = createdAtOf(Key.slice(prefix.length));
        if (at && Date.now() - at.getTime() > ABANDONED_MS) {
          await client.send(new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId }));
        }
      }
    },
  };
}

function clientOf({ endpoint, region, forcePathStyle, ca }: BucketSettings): S3Client {
  const authorities = ca === undefined ? {} : { ca: [...getCACertificates("default"), ca] };
  return new S3Client({
    endpoint,
    region,
    forcePathStyle,
    maxAttempts: ATTEMPTS,
    // Stores other than Amazon's do not know the checksums that the SDK would add.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: new NodeHttpHandler({
      httpsAgent: new Agent({ keepAlive: true, ...authorities }),
      connectionTimeout: 10_000,
      requestTimeout: TIMEOUT_MS,
      socketTimeout: TIMEOUT_MS,
      throwOnRequestTimeout: true,
    }),
  });
}

type ObjectRef = { Bucket: string; Key: string };

/** The object from its beginning to its end: after a connection that broke, the rest of the very same object. */
async function* readObject(client: S3Client, object: ObjectRef): AsyncGenerator<Uint8Array> {
  let [read, size, failures] = [0, Number.POSITIVE_INFINITY, 0];
  let etag: string | undefined;
  while (read < size) {
    const rest = read === 0 ? {} : { Range: `bytes=${read}-`, IfMatch: etag };
    const answer = await client.send(new GetObjectCommand({ ...object, ...rest }));
    etag ??= answer.ETag;
    size = read + (answer.ContentLength ?? 0);
    try {
      for await (const chunk of answer.Body as AsyncIterable<Uint8Array>) {
        read += chunk.length;
        yield chunk;
      }
      if (read < size) {
        throw new Error(`s3://${object.Bucket}/${object.Key} ended after ${read} of ${size} bytes`);
      }
    } catch (error) {
      failures += 1;
      if (failures === ATTEMPTS) {
        throw error;
      }
    }
  }
}

async function exists(client: S3Client, object: ObjectRef): Promise<boolean> {
  try {
    await client.send(new HeadObjectCommand(object));
    return true;
  } catch (error) {
    if ((error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode === 404) {
      return false;
    }
    throw error;
  }
}
