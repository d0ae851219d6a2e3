import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";

/** Bytes of a request, as received and unpacked. */
export const MAX_BODY = 8 * 1024 * 1024;

const unpack = promisify(gunzip);

/** A refusal with its status; 4xx ends an exporter's tries, 503 has it try again. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export function typeOf(request: IncomingMessage): string {
  return (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

/** @throws Refused when there is too much of it, or it cannot be unpacked */
export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    // The body is read for a while longer, so that the client receives the answer.
    if (bytes > 4 * MAX_BODY) {
      break;
    }
    if (bytes > MAX_BODY) {
      parts = [];
    } else {
      parts.push(part);
    }
  }
  if (bytes > MAX_BODY) {
    throw new Refused(413, "too long");
  }
  const body = Buffer.concat(parts);
  const encoding = request.headers["content-encoding"] ?? "identity";
  if (encoding === "identity") {
    return body;
  }
  if (encoding !== "gzip") {
    throw new Refused(415, "gzip or nothing");
  }
  try {
    return await unpack(body, { maxOutputLength: MAX_BODY });
  } catch (error) {
    const isLong = (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
    throw isLong ? new Refused(413, "too long") : new Refused(400, "cannot be unpacked");
  }
}
