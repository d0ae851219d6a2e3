/** The bytes of an archive: lines of JSON, compressed with gzip, encrypted with age (https://age-encryption.org/v1). */

import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { createGunzip, createGzip } from "node:zlib";
import { Decrypter, Encrypter } from "age-encryption";
import { type ArchiveRecord, archiveRecord, MAX_LINE } from "./record.ts";

const LINE_FEED = 10;

/**
 * The bytes of an archive, as they are made.
 * @param recipients public keys, `age1...`; each of their identities alone can read it
 * @throws Error when a record is too long to be read; what `records` throws
 */
export async function* encryptArchive(
  recipients: readonly string[],
  records: AsyncIterable<ArchiveRecord>,
): AsyncGenerator<Uint8Array> {
  const encrypter = new Encrypter();
  for (const recipient of recipients) {
    encrypter.addRecipient(recipient);
  }
  const gzip = createGzip();
  const encrypted = await encrypter.encrypt(webStream(gzip));
  // What fails there fails the reading of its output.
  pipeline(lines(records), gzip).catch(() => undefined);
  yield* encrypted as ReadableStream<Uint8Array>;
}

async function* lines(records: AsyncIterable<ArchiveRecord>): AsyncGenerator<string> {
  for await (const record of records) {
    const line = `${JSON.stringify(record)}\n`;
    if (Buffer.byteLength(line) > MAX_LINE) {
      throw new Error(
        `a record of type ${record.type} is longer than ${MAX_LINE} bytes: it could not be read`,
      );
    }
    yield line;
  }
}

/**
 * Reads an archive, record by record.
 * @param bytes of all of it
 * @param identity the private key, `AGE-SECRET-KEY-1...`
 * @throws Error when the identity is not one of its recipients, a byte differs, or its end is missing
 */
export async function* readArchive(
  bytes: AsyncIterable<Uint8Array>,
  identity: string,
): AsyncGenerator<ArchiveRecord> {
  const decrypter = new Decrypter();
  decrypter.addIdentity(identity.trim());
  const decrypted = await decrypter.decrypt(webStream(Readable.from(bytes)));
  const gunzip = createGunzip();
  // What fails there fails the reading of its output.
  pipeline(Readable.fromWeb(decrypted as ReadableStream), gunzip).catch(() => undefined);
  const counted = { objects: 0, ledgerBytes: 0 };
  let last: ArchiveRecord | undefined;
  for await (const line of linesOf(gunzip)) {
    const record = archiveRecord.parse(JSON.parse(line));
    if ((last === undefined) !== (record.type === "header") || last?.type === "end") {
      throw new Error(`a record of type ${record.type} of the archive is out of place`);
    }
    last = record;
    if (record.type === "object") {
      counted.objects += 1;
    } else if (record.type === "ledger") {
      counted.ledgerBytes += Buffer.byteLength(record.sql);
    }
    yield record;
  }
  if (last?.type !== "end" || last.objects !== counted.objects || last.ledgerBytes !== counted.ledgerBytes) {
    throw new Error("the archive is not whole");
  }
}

/** @throws Error when a line is longer than MAX_LINE */
async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let rest = chunk;
    for (let at = rest.indexOf(LINE_FEED); at >= 0; at = rest.indexOf(LINE_FEED)) {
      yield Buffer.concat([...parts, rest.subarray(0, at)]).toString("utf8");
      parts = [];
      size = 0;
      rest = rest.subarray(at + 1);
    }
    parts.push(rest);
    size += rest.length;
    if (size > MAX_LINE) {
      throw new Error(`a line of the archive is longer than ${MAX_LINE} bytes`);
    }
  }
  if (size > 0) {
    yield Buffer.concat(parts).toString("utf8");
  }
}

/** The stream as age takes one: global types, of the browser, in place of Node's own. */
const webStream = (stream: Readable) =>
  Readable.toWeb(stream) as unknown as globalThis.ReadableStream<Uint8Array>;
