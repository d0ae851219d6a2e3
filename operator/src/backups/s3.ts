/** The few calls of an S3-compatible store that backups need, and URLs that let others make two of them. */

import { getCACertificates } from "node:tls";
import { AwsClient } from "aws4fetch";
import { Agent, fetch, type Response } from "undici";
import { RetryableError } from "../reconcile-errors.ts";
import type { BackupSettings } from "./settings.ts";

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
}

export interface UploadedPart {
  number: number;
  etag: string;
  size: number;
}

/** Where a bucket is, and whose certificate its store has. */
export type S3Settings = Pick<
  NonNullable<BackupSettings["s3"]>,
  "endpoint" | "region" | "bucket" | "forcePathStyle" | "ca"
>;

const TIMEOUT_MS = 30_000;
/** The longest that a signature may hold: seven days. */
const LONGEST_SECONDS = 604_800;

export class S3 {
  readonly #settings: S3Settings;
  readonly #client: AwsClient;

  constructor(settings: S3Settings, credentials: S3Credentials) {
    this.#settings = settings;
    // Tries again by itself would be behind the back of whoever counts them.
    this.#client = new AwsClient({
      ...credentials,
      service: "s3",
      region: settings.region,
      retries: 0,
    });
  }

  /** Begins an upload in parts; its id. */
  async createUpload(key: string, signal: AbortSignal): Promise<string> {
    const text = await this.#call("POST", this.#url(key, { uploads: "" }), signal);
    const [id] = values(text, "UploadId");
    if (!id) {
      throw unreadable();
    }
    return id;
  }

  /** Uploads of exactly this key that are under way. */
  async listUploads(key: string, signal: AbortSignal): Promise<string[]> {
    const text = await this.#call("GET", this.#url("", { uploads: "", prefix: key }), signal);
    return elements(text, "Upload")
      .filter((upload) => values(upload, "Key")[0] === key)
      .flatMap((upload) => values(upload, "UploadId"));
  }

  /** Every part that has arrived, by number. */
  async listParts(key: string, uploadId: string, signal: AbortSignal): Promise<UploadedPart[]> {
    const parts: UploadedPart[] = [];
    let marker: string | undefined = "0";
    while (marker !== undefined) {
      const query: Record<string, string> = { uploadId, "part-number-marker": marker };
      const text: string = await this.#call("GET", this.#url(key, query), signal);
      for (const part of elements(text, "Part")) {
        const [[number], [etag], [size]] = [
          values(part, "PartNumber"),
          values(part, "ETag"),
          values(part, "Size"),
        ];
        parts.push({ number: Number(number), etag: etag ?? "", size: Number(size) });
      }
      marker =
        values(text, "IsTruncated")[0] === "true" ? values(text, "NextPartNumberMarker")[0] : undefined;
    }
    return parts.toSorted((a, b) => a.number - b.number);
  }

  /** Makes the parts one object. It fails with status 200, too: then the answer is an error. */
  async completeUpload(
    key: string,
    uploadId: string,
    parts: readonly UploadedPart[],
    signal: AbortSignal,
  ): Promise<void> {
    const list = parts
      .map(
        ({ number, etag }) => `<Part><PartNumber>${number}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`,
      )
      .join("");
    const body = `<CompleteMultipartUpload>${list}</CompleteMultipartUpload>`;
    const text = await this.#call("POST", this.#url(key, { uploadId }), signal, body);
    if (/<Error>/.test(text)) {
      throw refused(values(text, "Code")[0] ?? "an error");
    }
  }

  async abortUpload(key: string, uploadId: string, signal: AbortSignal): Promise<void> {
    await this.#call("DELETE", this.#url(key, { uploadId }), signal, undefined, [404]);
  }

  async deleteObject(key: string, signal: AbortSignal): Promise<void> {
    await this.#call("DELETE", this.#url(key), signal, undefined, [404]);
  }

  /** Bytes of an object; undefined when there is none. */
  async sizeOf(key: string, signal: AbortSignal): Promise<number | undefined> {
    const response = await this.#send("HEAD", this.#url(key), signal);
    if (response.status === 404) {
      return undefined;
    }
    if (!response.ok) {
      throw refused(`status ${response.status}`);
    }
    return Number(response.headers.get("content-length"));
  }

  /** A URL by which whoever has it can write this part of this upload, and nothing else. */
  async partUrl(key: string, uploadId: string, number: number, seconds: number): Promise<string> {
    return this.#signed("PUT", this.#url(key, { partNumber: String(number), uploadId }), seconds);
  }

  /** A URL by which whoever has it can read this object, and nothing else. */
  async readUrl(key: string, seconds: number): Promise<string> {
    return this.#signed("GET", this.#url(key), seconds);
  }

  async #signed(method: string, url: URL, seconds: number): Promise<string> {
    url.searchParams.set("X-Amz-Expires", String(Math.min(Math.ceil(seconds), LONGEST_SECONDS)));
    const request = await this.#client.sign(url.toString(), { method, aws: { signQuery: true } });
    return request.url;
  }

  #url(key: string, query: Record<string, string> = {}): URL {
    const { endpoint, bucket, forcePathStyle } = this.#settings;
    const url = new URL(endpoint);
    const path = key.split("/").map(encodeURIComponent).join("/");
    const base = url.pathname.replace(/\/$/, "");
    if (forcePathStyle) {
      url.pathname = `${base}/${bucket}/${path}`;
    } else {
      url.hostname = `${bucket}.${url.hostname}`;
      url.pathname = `${base}/${path}`;
    }
    for (const [name, value] of Object.entries(query)) {
      url.searchParams.set(name, value);
    }
    return url;
  }

  /** @throws RetryableError when the store does not answer, or refuses */
  async #call(
    method: string,
    url: URL,
    signal: AbortSignal,
    body?: string,
    fine: readonly number[] = [],
  ): Promise<string> {
    const response = await this.#send(method, url, signal, body);
    const text = await response.text();
    if (!response.ok && !fine.includes(response.status)) {
      throw refused(values(text, "Code")[0] ?? `status ${response.status}`);
    }
    return text;
  }

  async #send(method: string, url: URL, signal: AbortSignal, body?: string): Promise<Response> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const signed = await this.#client.sign(url.toString(), { method, body });
    const { ca } = this.#settings;
    try {
      return await fetch(signed.url, {
        method,
        headers: [...signed.headers],
        body,
        signal: limited,
        ...(ca ? { dispatcher: believing(ca) } : {}),
      });
    } catch (error) {
      if (signal.aborted) {
        throw error;
      }
      throw new RetryableError("StoreUnavailable", `the store of backups does not answer${because(error)}`, {
        cause: error,
      });
    }
  }
}

/** Connections of the authorities that the settings name now. */
let own: { ca: string; agent: Agent } | undefined;

function believing(ca: string): Agent {
  if (own?.ca !== ca) {
    void own?.agent.close();
    own = { ca, agent: new Agent({ connect: { ca: [...getCACertificates("default"), ca] } }) };
  }
  return own.agent;
}

/** Codes such as ECONNREFUSED and those of OpenSSL say what is wrong, and nothing of what was sent. */
function because(error: unknown): string {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  return code ? `: ${code}` : "";
}

/** The settings name no bucket any more, or there are no keys to it. */
export class NoBucket extends RetryableError {
  constructor() {
    super("StoreUnavailable", "there is no bucket to keep backups in");
  }
}

const refused = (why: string) => new RetryableError("StoreRefused", `the store of backups refuses: ${why}`);
const unreadable = () => refused("an answer that is none");

/** The contents of every element of this name that holds others. The store's answers have no attributes but namespaces. */
function elements(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}(?: [^>]*)?>([\\s\\S]*?)</${name}>`, "g"))].map(
    ([, inner = ""]) => inner,
  );
}

function values(xml: string, name: string): string[] {
  return elements(xml, name).map((text) =>
    text
      .replaceAll("&quot;", '"')
      .replaceAll("&#34;", '"')
      .replaceAll("&apos;", "'")
      .replaceAll("&#39;", "'")
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      .replaceAll("&amp;", "&"),
  );
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
