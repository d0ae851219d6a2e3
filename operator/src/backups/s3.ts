/**
 * The calls of an S3-compatible store that backups need, by Amazon's SDK, and presigned URLs with which a pod uploads one part or
 * reads one object. The SDK is loaded by the first call: a platform without a bucket does not pay for its memory.
 */

import { Agent } from "node:https";
import { getCACertificates } from "node:tls";
import type { ListPartsCommandOutput, Part, S3Client, S3ClientConfig } from "@aws-sdk/client-s3";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { RetryableError } from "../reconcile-errors.ts";
import type { BackupSettings } from "./settings.ts";

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
}

export interface UploadedPart {
  number: number;
  etag: string;
  /** Bytes. */
  size: number;
}

/** Where a bucket is, and by whom the certificate of its store is signed. */
export type S3Settings = Pick<
  NonNullable<BackupSettings["s3"]>,
  "endpoint" | "region" | "bucket" | "forcePathStyle" | "ca"
>;

type Sdk = typeof import("@aws-sdk/client-s3");

const TIMEOUT_MS = 30_000;
/** The longest validity of a presigned URL: seven days. */
const MAX_EXPIRY_SECONDS = 604_800;

/** One bucket, with one pair of keys. Every method @throws RetryableError when the store does not answer or refuses. */
export class S3 {
  readonly #bucket: string;
  readonly #config: S3ClientConfig;
  #client: S3Client | undefined;

  constructor({ endpoint, region, bucket, forcePathStyle, ca }: S3Settings, credentials: S3Credentials) {
    this.#bucket = bucket;
    this.#config = {
      endpoint,
      region,
      forcePathStyle,
      credentials,
      // The reconciler counts attempts and waits between them.
      maxAttempts: 1,
      // Stores other than Amazon's do not know the checksums that the SDK would add.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      requestHandler: requestHandler(ca),
    };
  }

  /** Creates a multipart upload. @returns its id */
  async createUpload(key: string, signal: AbortSignal): Promise<string> {
    const { UploadId } = await this.#send(signal, (sdk, client, options) =>
      client.send(new sdk.CreateMultipartUploadCommand(this.#object(key)), options),
    );
    if (!UploadId) {
      throw refused("an answer without an upload's id");
    }
    return UploadId;
  }

  /** Uploads of exactly this key that are neither completed nor aborted. */
  async listUploads(key: string, signal: AbortSignal): Promise<string[]> {
    const { Uploads = [] } = await this.#send(signal, (sdk, client, options) =>
      client.send(new sdk.ListMultipartUploadsCommand({ Bucket: this.#bucket, Prefix: key }), options),
    );
    return Uploads.filter((upload) => upload.Key === key).flatMap(({ UploadId }) => UploadId ?? []);
  }

  /** Every uploaded part, by number. */
  async listParts(key: string, uploadId: string, signal: AbortSignal): Promise<UploadedPart[]> {
    const parts: Part[] = [];
    let marker: string | undefined;
    // Not the SDK's paginator: stores other than Amazon's name a next marker on their last page, too.
    do {
      const input = { ...this.#object(key), UploadId: uploadId, PartNumberMarker: marker };
      const page: ListPartsCommandOutput = await this.#send(signal, (sdk, client, options) =>
        client.send(new sdk.ListPartsCommand(input), options),
      );
      parts.push(...(page.Parts ?? []));
      marker = page.IsTruncated === true ? page.NextPartNumberMarker : undefined;
    } while (marker !== undefined);
    return parts
      .map(({ PartNumber = 0, ETag = "", Size = 0 }) => ({ number: PartNumber, etag: ETag, size: Size }))
      .toSorted((a, b) => a.number - b.number);
  }

  /** Makes the parts one object. */
  async completeUpload(
    key: string,
    uploadId: string,
    parts: readonly UploadedPart[],
    signal: AbortSignal,
  ): Promise<void> {
    const Parts = parts.map(({ number, etag }) => ({ PartNumber: number, ETag: etag }));
    const input = { ...this.#object(key), UploadId: uploadId, MultipartUpload: { Parts } };
    await this.#send(signal, (sdk, client, options) =>
      client.send(new sdk.CompleteMultipartUploadCommand(input), options),
    );
  }

  /** Removes an upload with its parts; one that does not exist is no error. */
  async abortUpload(key: string, uploadId: string, signal: AbortSignal): Promise<void> {
    await this.#send(signal, (sdk, client, options) =>
      client
        .send(new sdk.AbortMultipartUploadCommand({ ...this.#object(key), UploadId: uploadId }), options)
        .catch(unlessMissing),
    );
  }

  /** Deletes an object; one that does not exist is no error. */
  async deleteObject(key: string, signal: AbortSignal): Promise<void> {
    await this.#send(signal, (sdk, client, options) =>
      client.send(new sdk.DeleteObjectCommand(this.#object(key)), options).catch(unlessMissing),
    );
  }

  /** Bytes of an object; undefined when it does not exist. */
  async sizeOf(key: string, signal: AbortSignal): Promise<number | undefined> {
    const head = await this.#send(signal, (sdk, client, options) =>
      client.send(new sdk.HeadObjectCommand(this.#object(key)), options).catch(unlessMissing),
    );
    return head?.ContentLength;
  }

  /** A URL with which this part of this upload can be written, and nothing else. */
  async partUrl(key: string, uploadId: string, number: number, seconds: number): Promise<string> {
    const { sdk, client, presign } = await this.#open();
    const input = { ...this.#object(key), UploadId: uploadId, PartNumber: number };
    return await presign(client, new sdk.UploadPartCommand(input), { expiresIn: expiryOf(seconds) });
  }

  /** A URL with which this object can be read, and nothing else. */
  async readUrl(key: string, seconds: number): Promise<string> {
    const { sdk, client, presign } = await this.#open();
    return await presign(client, new sdk.GetObjectCommand(this.#object(key)), {
      expiresIn: expiryOf(seconds),
    });
  }

  #object(key: string) {
    return { Bucket: this.#bucket, Key: key };
  }

  async #open() {
    const [sdk, { getSignedUrl }] = await Promise.all([
      import("@aws-sdk/client-s3"),
      import("@aws-sdk/s3-request-presigner"),
    ]);
    this.#client ??= new sdk.S3Client(this.#config);
    return { sdk, client: this.#client, presign: getSignedUrl };
  }

  async #send<T>(
    signal: AbortSignal,
    call: (sdk: Sdk, client: S3Client, options: { abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    const { sdk, client } = await this.#open();
    const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    try {
      return await call(sdk, client, { abortSignal });
    } catch (error) {
      if (signal.aborted) {
        throw error;
      }
      throw toRetryable(error);
    }
  }
}

/** The settings name no bucket, or there are no keys to it. */
export class NoBucket extends RetryableError {
  constructor() {
    super("StoreUnavailable", "there is no bucket to keep backups in");
  }
}

/** Connections are shared by all clients of the same authorities, and closed when the settings name others. */
let shared: { ca: string; handler: NodeHttpHandler } | undefined;

function requestHandler(ca: string): NodeHttpHandler {
  if (shared?.ca !== ca) {
    shared?.handler.destroy();
    const httpsAgent = new Agent({
      keepAlive: true,
      ...(ca ? { ca: [...getCACertificates("default"), ca] } : {}),
    });
    shared = { ca, handler: new NodeHttpHandler({ httpsAgent }) };
  }
  return shared.handler;
}

const expiryOf = (seconds: number): number => Math.min(Math.ceil(seconds), MAX_EXPIRY_SECONDS);

const statusOf = (error: unknown): number | undefined =>
  (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;

function unlessMissing(error: unknown): undefined {
  if (statusOf(error) !== 404) {
    throw error;
  }
}

const refused = (why: string, cause?: unknown) =>
  new RetryableError("StoreRefused", `the store of backups refuses: ${why}`, { cause });

/** The code of S3's error, or of the connection's, such as ECONNREFUSED: neither contains what was sent. */
function toRetryable(error: unknown): RetryableError {
  const status = statusOf(error);
  const { name, code } = error as NodeJS.ErrnoException;
  if (status !== undefined) {
    const isCode = /^[A-Za-z]+$/.test(name) && !["Error", "Unknown", "UnknownError"].includes(name);
    return refused(isCode ? name : `status ${status}`, error);
  }
  const why = code ? `: ${code}` : "";
  return new RetryableError("StoreUnavailable", `the store of backups does not answer${why}`, {
    cause: error,
  });
}
