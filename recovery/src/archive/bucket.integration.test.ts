import { createHash, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startS3, type TestS3 } from "../../../test/kit/servers/s3.ts";
import { removeExpired } from "../backup.ts";
import { bucketStorage } from "./bucket.ts";
import { archiveName } from "./name.ts";

/** Archives in a bucket of a real S3 server, which checks signatures. */

const MIB = 2 ** 20;
let server: TestS3;
let variables: NodeJS.ProcessEnv;
beforeAll(async () => {
  server = await startS3();
  variables = { ...process.env };
  // As a person or the chart gives them.
  process.env.AWS_ACCESS_KEY_ID = server.accessKeyId;
  process.env.AWS_SECRET_ACCESS_KEY = server.secretAccessKey;
}, 600_000);
afterAll(async () => {
  process.env = variables;
  await server?.stop();
});

const storage = (prefix: string, endpoint = server.endpoint) =>
  bucketStorage({ bucket: server.bucket, prefix, endpoint, region: "us-east-1", forcePathStyle: true });
const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

async function* chunksOf(bytes: Buffer, fails = false): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += 65_536) {
    yield bytes.subarray(at, at + 65_536);
  }
  if (fails) {
    throw new Error("the apiserver does not answer");
  }
}

async function readAll(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** A way to the server that breaks as many connections, each after so many bytes to the client. */
async function breaking(port: number, bytes: number, times: number) {
  let broken = 0;
  const proxy = createServer((client) => {
    const there = connect(port, "127.0.0.1");
    let passed = 0;
    there.on("data", (chunk: Buffer) => {
      passed += chunk.length;
      if (passed > bytes && broken < times) {
        broken += 1;
        client.destroy();
        there.destroy();
      }
    });
    client.on("error", () => there.destroy()).on("close", () => there.destroy());
    there.on("error", () => client.destroy()).on("close", () => client.destroy());
    client.pipe(there);
    there.pipe(client);
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port: own } = proxy.address() as AddressInfo;
  return { endpoint: `http://127.0.0.1:${own}`, broken: () => broken, close: () => proxy.close() };
}

describe("an archive in a bucket", () => {
  test("of several parts is read as it was written, and never overwritten", async () => {
    const place = storage("whole/");
    const bytes = randomBytes(40 * MIB + 7);
    expect(await place.write("a.age", chunksOf(bytes))).toBe(bytes.length);
    expect(sha256(await readAll(place.read("a.age")))).toBe(sha256(bytes));
    expect(await place.list()).toEqual([{ name: "a.age", size: bytes.length }]);
    await expect(place.write("a.age", chunksOf(bytes))).rejects.toMatchObject({ code: "EEXIST" });
    await place.delete("a.age");
    expect(await place.list()).toEqual([]);
    await expect(readAll(place.read("a.age"))).rejects.toThrow(/NoSuchKey|does not exist/);
  });

  test("that cannot be completed is none, and leaves no part of it", async () => {
    const bytes = randomBytes(20 * MIB);
    const before = await server.objects();
    await expect(storage("broken/").write("a.age", chunksOf(bytes, true))).rejects.toThrow("does not answer");
    expect(await server.objects()).toEqual(before);
    expect(await server.unfinished()).toEqual([]);
  });

  test("is read to its end over connections that break", async () => {
    const bytes = randomBytes(24 * MIB);
    await storage("far/").write("a.age", chunksOf(bytes));
    const way = await breaking(server.port, 7 * MIB, 2);
    try {
      expect(sha256(await readAll(storage("far/", way.endpoint).read("a.age")))).toBe(sha256(bytes));
      expect(way.broken()).toBe(2);
    } finally {
      way.close();
    }
  });

  test("goes when it has expired; what is of another name or in another folder stays", async () => {
    const place = storage("old/");
    const at = (day: string) => archiveName(`2026-11-${day}T04:00:00.000Z`, randomUUID());
    const [first, second, last] = [at("01"), at("02"), at("29")];
    for (const name of [
      first,
      second,
      last,
      "notes.age",
      "platform-20250101T000000Z.age",
      `deeper/${first}`,
    ]) {
      await place.write(name, chunksOf(Buffer.from("x")));
    }
    const retention = { days: 7, keepAtLeast: 2 };
    expect(await removeExpired(place, retention, new Date("2026-11-29T05:00:00Z"))).toEqual([first]);
    const names = (await place.list()).map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([second, last, "notes.age", "platform-20250101T000000Z.age"]),
    );
    expect(await server.objects()).toContain(`old/deeper/${first}`);
  });

  test("whose writer was killed days ago does not stay in parts", async () => {
    const { CreateMultipartUploadCommand, S3Client } = await import("@aws-sdk/client-s3");
    const client = new S3Client({ endpoint: server.endpoint, region: "us-east-1", forcePathStyle: true });
    const begin = (name: string) =>
      client.send(new CreateMultipartUploadCommand({ Bucket: server.bucket, Key: `parts/${name}` }));
    const [old, young] = [new Date("2026-01-01T00:00:00Z"), new Date()].map((at) =>
      archiveName(at.toISOString(), randomUUID()),
    );
    const foreign = "somebody-elses.age";
    await Promise.all([old, young, foreign].map((name) => begin(name ?? "")));
    await storage("parts/").removeUnfinished();
    const { ListMultipartUploadsCommand } = await import("@aws-sdk/client-s3");
    const { Uploads = [] } = await client.send(
      new ListMultipartUploadsCommand({ Bucket: server.bucket, Prefix: "parts/" }),
    );
    expect(Uploads.map(({ Key }) => Key).toSorted()).toEqual(
      [`parts/${young}`, `parts/${foreign}`].toSorted(),
    );
    client.destroy();
  });
});

test("another secret is refused, and a store that is not there does not answer", async () => {
  const endpoint = "http://127.0.0.1:9";
  await expect(storage("x/", endpoint).list()).rejects.toThrow("ECONNREFUSED");
  process.env.AWS_SECRET_ACCESS_KEY = "another";
  try {
    await expect(storage("x/").list()).rejects.toThrow(/signature/i);
  } finally {
    process.env.AWS_SECRET_ACCESS_KEY = server.secretAccessKey;
  }
});
