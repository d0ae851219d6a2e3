import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeClient, KubernetesObject, ObjectRef } from "@slipway/controller-runtime";
import type { Backup } from "@slipway/crds";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { freePorts } from "../../../hack/lib/ports.ts";
import { startS3, type TestS3 } from "../../../test/kit/servers/s3.ts";
import { etagsHash } from "./agent/protocol.ts";
import { partsSink, readUrl, readUrls } from "./agent/storage.ts";
import { S3, type S3Credentials } from "./s3.ts";
import { s3Store } from "./s3-store.ts";
import { parseBackupSettings } from "./settings.ts";

/** The store of backups against a real server that checks signatures. */

const backup: Backup = {
  apiVersion: "slipway.dev/v1alpha1",
  kind: "Backup",
  metadata: { name: "shop-b1", namespace: "slipway-org-acme", uid: "u" },
  spec: { projectRef: { name: "shop" }, trigger: "manual", requestedAt: "2026-01-01T00:00:00Z" },
};
const KEY = "all/acme/shop/shop-b1.dump";
const owner = { apiVersion: "slipway.dev/v1alpha1", kind: "Backup", name: "shop-b1", uid: "u" };
const job = { name: "shop-b1-dump", namespace: "slipway-org-acme", owner };
const reading = { ...job, name: "shop-restore" };
const { signal } = new AbortController();
const MIB = 2 ** 20;

const settingsOf = ({ endpoint, bucket, ca }: TestS3) =>
  parseBackupSettings(
    JSON.stringify({ image: "o", store: "s3", s3: { endpoint, bucket, prefix: "all/", ca } }),
  );

/** The store as the operator has it; Secrets are in memory. */
function storeOf(server: TestS3, credentials: S3Credentials = server) {
  const secrets = new Map<string, KubernetesObject & { data: Record<string, string> }>();
  const client = {
    getOrUndefined: async (_: unknown, { name }: ObjectRef) => secrets.get(name),
    create: async (_: unknown, secret: KubernetesObject & { data: Record<string, string> }) =>
      secrets.set(secret.metadata?.name ?? "", secret),
  } as unknown as KubeClient;
  const settings = settingsOf(server);
  const { accessKeyId, secretAccessKey } = credentials;
  const s3 = () => new S3(settings.s3 as NonNullable<typeof settings.s3>, { accessKeyId, secretAccessKey });
  /** What a pod is given, as its agent reads it. */
  const urls = async (name = job.name) => {
    const file = join(folder, name);
    await writeFile(file, Buffer.from(secrets.get(name)?.data["urls.json"] ?? "", "base64"));
    return readUrls(file);
  };
  const forget = () => secrets.clear();
  return {
    store: s3Store(
      client,
      () => settings,
      () => s3(),
    ),
    s3: s3(),
    urls,
    forget,
  };
}

const sha256 = (data: Buffer) => createHash("sha256").update(data).digest("hex");

/** In chunks, as they come out of a pipe. */
function* chunksOf(data: Buffer): Generator<Buffer> {
  for (let at = 0; at < data.length; at += 65_536) {
    yield data.subarray(at, at + 65_536);
  }
}

async function readAll(url: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of readUrl(url)) {
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

/** Sends the beginning of a part, and breaks the connection. */
async function cutOff(url: string, bytes: number, of: number): Promise<void> {
  const put = request(url, { method: "PUT", headers: { "content-length": of } });
  const broken = once(put, "error");
  await new Promise<void>((resolve) => put.write(randomBytes(bytes), () => resolve()));
  put.destroy(new Error("cut off"));
  await broken;
}

/** A way to the server that breaks the first connection over which so many bytes have gone, and once more after `again`. */
async function breaking(port: number, bytes: number) {
  let left = 1;
  let broken = 0;
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const there = connect(port, "127.0.0.1");
    sockets.add(client);
    let passed = 0;
    const count = (chunk: Buffer) => {
      passed += chunk.length;
      if (passed < bytes || left === 0) {
        return;
      }
      left -= 1;
      broken += 1;
      client.destroy();
      there.destroy();
    };
    for (const [from, to] of [
      [client, there],
      [there, client],
    ] as const) {
      from.on("data", count).on("error", () => to.destroy());
      from.pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    port: (proxy.address() as AddressInfo).port,
    broken: () => broken,
    again: () => {
      left = 1;
    },
    close: async () => {
      const closed = once(proxy, "close");
      proxy.close();
      for (const socket of sockets) {
        socket.destroy();
      }
      await closed;
    },
  };
}

let server: TestS3;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-s3-urls-"));
  server = await startS3();
}, 600_000);
afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => () => storeOf(server).store.erase(backup, signal));

describe("a backup in a bucket", () => {
  test("of several parts comes back as it went, and leaves nothing when it is removed", async () => {
    const { store, s3, urls } = storeOf(server);
    const data = randomBytes(40 * MIB + 7);
    const place = await store.openWrite(job, backup, 10, signal);
    expect(place).toEqual({ kind: "urls", partBytes: 16 * MIB });
    const { parts: links = [] } = await urls();
    const { parts } = await partsSink(links, 16 * MIB).take(Readable.from(chunksOf(data)));
    expect(parts).toBe(3);
    // Nobody finds half a backup.
    expect(await server.objects()).toEqual([]);
    const result = { ok: true, sizeBytes: data.length, sha256: sha256(data), parts: 3 } as const;
    expect(await store.commit(job, backup, result, signal)).toBeUndefined();
    expect(await server.objects()).toEqual([KEY]);
    expect(await server.unfinished()).toEqual([]);
    expect(await s3.sizeOf(KEY, signal)).toBe(data.length);
    // An operator that was killed before it could say so asks again.
    expect(await store.commit(job, backup, result, signal)).toBeUndefined();

    await store.openRead(reading, backup, signal);
    const { get = "" } = await urls(reading.name);
    expect(sha256(await readAll(get))).toBe(sha256(data));

    await store.erase(backup, signal);
    await store.erase(backup, signal);
    expect(await server.objects()).toEqual([]);
    expect(await s3.sizeOf(KEY, signal)).toBeUndefined();
    await expect(readAll(get)).rejects.toThrow("the store answered 404");
  });

  test("is what the last try has uploaded", async () => {
    const { store, urls } = storeOf(server);
    await store.openWrite(job, backup, 10, signal);
    const { parts: links = [] } = await urls();
    await partsSink(links, 5 * MIB).take(Readable.from(chunksOf(randomBytes(12 * MIB))));
    const data = randomBytes(6 * MIB);
    const taken = await partsSink(links, 5 * MIB).take(Readable.from(chunksOf(data)));
    const result = { ok: true, sizeBytes: data.length, sha256: sha256(data), ...taken } as const;
    expect(await store.commit(job, backup, result, signal)).toBeUndefined();
    await store.openRead(reading, backup, signal);
    const { get = "" } = await urls(reading.name);
    expect(sha256(await readAll(get))).toBe(sha256(data));
  });

  test("whose upload was cut off is none, and what has arrived goes", async () => {
    const { store, s3, urls } = storeOf(server);
    await store.openWrite(job, backup, 10, signal);
    const { parts: links = [] } = await urls();
    const data = randomBytes(20 * MIB);
    const taken = await partsSink(links, 16 * MIB).take(Readable.from(chunksOf(data)));
    // The pod is gone in the middle of a part. This server then takes what has come for the part.
    await cutOff(links[0] ?? "", 3 * MIB, 16 * MIB);
    const [id = ""] = await s3.listUploads(KEY, signal);
    const said = { ok: true, sizeBytes: data.length, sha256: sha256(data), ...taken } as const;
    await expect
      .poll(async () => etagsHash((await s3.listParts(KEY, id, signal)).map(({ etag }) => etag)))
      .not.toBe(taken.etags);
    expect(await store.commit(job, backup, said, signal)).toBe(
      "The store has other parts than were uploaded.",
    );
    const more = { ...said, sizeBytes: 2 * data.length, parts: 3 };
    expect(await store.commit(job, backup, more, signal)).toBe(
      "The store does not have every part that was uploaded.",
    );
    expect(await server.objects()).toEqual([]);
    await store.erase(backup, signal);
    expect(await s3.listUploads(KEY, signal)).toEqual([]);
    expect(await server.unfinished()).toEqual([]);
  });

  test("comes and goes over connections that break", async () => {
    const between = await breaking(server.port, 5 * MIB);
    try {
      const { store, urls } = storeOf({ ...server, endpoint: `http://127.0.0.1:${between.port}` });
      await store.openWrite(job, backup, 10, signal);
      const data = randomBytes(20 * MIB);
      const { parts: links = [] } = await urls();
      const taken = await partsSink(links, 16 * MIB).take(Readable.from(chunksOf(data)));
      expect(between.broken()).toBe(1);
      const result = { ok: true, sizeBytes: data.length, sha256: sha256(data), ...taken } as const;
      expect(await store.commit(job, backup, result, signal)).toBeUndefined();
      between.again();
      await store.openRead(reading, backup, signal);
      expect(sha256(await readAll((await urls(reading.name)).get ?? ""))).toBe(sha256(data));
      expect(between.broken()).toBe(2);
    } finally {
      await between.close();
    }
  });

  test("has one upload, though the operator that began another one was killed", async () => {
    const { store, s3, forget } = storeOf(server);
    await store.openWrite(job, backup, 10, signal);
    const [first] = await s3.listUploads(KEY, signal);
    // It had not written down what it had begun.
    forget();
    await store.openWrite(job, backup, 10, signal);
    const uploads = await s3.listUploads(KEY, signal);
    expect(uploads).toHaveLength(1);
    expect(uploads).not.toContain(first);
  });

  test("whose key begins as another one's is not mistaken for it", async () => {
    const { s3 } = storeOf(server);
    const id = await s3.createUpload(`${KEY}.more`, signal);
    expect(await s3.listUploads(KEY, signal)).toEqual([]);
    await s3.abortUpload(`${KEY}.more`, id, signal);
    await s3.abortUpload(`${KEY}.more`, id, signal);
  });
});

describe("a URL", () => {
  test("is good for its own part alone", async () => {
    const { store, urls } = storeOf(server);
    await store.openWrite(job, backup, 10, signal);
    const { parts: [one = ""] = [] } = await urls();
    const put = (url: string) => fetch(url, { method: "PUT", body: "x" }).then(({ status }) => status);
    expect(await put(one.replace("partNumber=1&", "partNumber=2&"))).toBe(403);
    expect(await put(one.replace("shop-b1", "shop-b2"))).toBe(403);
    expect((await fetch(one)).status).toBe(403);
    expect(await put(one)).toBe(200);
  });

  test("is good for its time alone", async () => {
    const { s3 } = storeOf(server);
    const urls = await Promise.all([1, 300].map((seconds) => s3.readUrl(KEY, seconds)));
    await sleep(2_100);
    const statuses = await Promise.all(urls.map(async (url) => (await fetch(url)).status));
    expect(statuses).toEqual([403, 404]);
  });
});

describe("what the store rejects is reported in words", () => {
  const open = (of: TestS3, credentials?: S3Credentials) =>
    storeOf(of, credentials).store.openWrite(job, backup, 10, signal);

  test("another secret", async () => {
    const wrong = { ...server, secretAccessKey: "another" };
    await expect(open(server, wrong)).rejects.toThrow("the store of backups refuses: SignatureDoesNotMatch");
  });

  test("an unknown key", async () => {
    const wrong = { ...server, accessKeyId: "AKunknown" };
    await expect(open(server, wrong)).rejects.toThrow(
      // The server's own word for it.
      /the store of backups refuses: (InvalidAccessKeyId|XAdminUserNotFound)/,
    );
  });

  test("a bucket that is not there", async () => {
    const elsewhere = { ...server, bucket: "elsewhere" };
    await expect(open(elsewhere)).rejects.toThrow("the store of backups refuses: NoSuchBucket");
  });

  test("and so is a store that is not there", async () => {
    const [port] = await freePorts(1);
    const away = { ...server, endpoint: `http://127.0.0.1:${port}` };
    await expect(open(away)).rejects.toThrow("the store of backups does not answer: ECONNREFUSED");
  });
});

test("a store with an authority of its own is believed by it alone", async () => {
  const own = await startS3({ tls: true });
  try {
    const stranger = storeOf({ ...own, ca: "" }).store.openWrite(job, backup, 10, signal);
    await expect(stranger).rejects.toThrow(/does not answer: .*(SELF_SIGNED|UNABLE_TO|CERT)/);

    const { store, urls } = storeOf(own);
    await store.openWrite(job, backup, 10, signal);
    const data = randomBytes(MIB);
    // Reading them, the agent begins to believe the authority.
    const { parts: links = [], ca } = await urls();
    expect(ca).toBe(own.ca);
    const { parts } = await partsSink(links, 16 * MIB).take(Readable.from(chunksOf(data)));
    const result = { ok: true, sizeBytes: data.length, sha256: sha256(data), parts } as const;
    expect(await store.commit(job, backup, result, signal)).toBeUndefined();
    await store.openRead(reading, backup, signal);
    expect(sha256(await readAll((await urls(reading.name)).get ?? ""))).toBe(sha256(data));
  } finally {
    await own.stop();
  }
});
