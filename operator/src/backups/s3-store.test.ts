import type { KubeClient, KubernetesObject, ObjectRef } from "@slipway/controller-runtime";
import type { Backup } from "@slipway/crds";
import { beforeEach, describe, expect, test } from "vitest";
import { etagsHash } from "./agent/protocol.ts";
import type { S3, UploadedPart } from "./s3.ts";
import { objectOf, partBytesOf, s3Store, storePolicy } from "./s3-store.ts";
import { parseBackupSettings } from "./settings.ts";

/** A bucket in memory. */
class Bucket implements Pick<S3, keyof S3> {
  readonly uploads = new Map<string, UploadedPart[]>();
  readonly objects = new Map<string, number>();
  #next = 1;

  async createUpload(key: string): Promise<string> {
    const id = `u${this.#next++}`;
    this.uploads.set(`${key} ${id}`, []);
    return id;
  }
  async listUploads(key: string): Promise<string[]> {
    return [...this.uploads.keys()]
      .filter((one) => one.startsWith(`${key} `))
      .map((one) => one.split(" ")[1] ?? "");
  }
  async listParts(key: string, id: string): Promise<UploadedPart[]> {
    return this.uploads.get(`${key} ${id}`) ?? [];
  }
  async completeUpload(key: string, id: string, parts: readonly UploadedPart[]): Promise<void> {
    this.uploads.delete(`${key} ${id}`);
    this.objects.set(
      key,
      parts.reduce((sum, { size }) => sum + size, 0),
    );
  }
  async abortUpload(key: string, id: string): Promise<void> {
    this.uploads.delete(`${key} ${id}`);
  }
  async deleteObject(key: string): Promise<void> {
    this.objects.delete(key);
  }
  async sizeOf(key: string): Promise<number | undefined> {
    return this.objects.get(key);
  }
  async partUrl(key: string, id: string, number: number): Promise<string> {
    return `put ${key} ${id} ${number}`;
  }
  async readUrl(key: string): Promise<string> {
    return `get ${key}`;
  }

  /** A pod's upload of one part. */
  put(url: string, size: number, etag = `e${size}`): void {
    const [, key, id, number] = url.split(" ");
    const parts = this.uploads.get(`${key} ${id}`);
    if (!parts) {
      throw new Error("no such upload");
    }
    parts[Number(number) - 1] = { number: Number(number), etag, size };
  }
}

const backup: Backup = {
  apiVersion: "slipway.dev/v1alpha1",
  kind: "Backup",
  metadata: { name: "shop-b1", namespace: "slipway-org-acme", uid: "u" },
  spec: { projectRef: { name: "shop" }, trigger: "manual", requestedAt: "2026-01-01T00:00:00Z" },
};
const KEY = "all/acme/shop/shop-b1.dump";
const owner = { apiVersion: "slipway.dev/v1alpha1", kind: "Backup", name: "shop-b1", uid: "u" };
const job = { name: "shop-b1-dump", namespace: "slipway-org-acme", owner };
const { signal } = new AbortController();
const settings = parseBackupSettings(
  "image: operator\nstore: s3\ns3: { endpoint: https://s3.example.com, bucket: backups, prefix: all/ }",
);
type Secret = KubernetesObject & { data: Record<string, string> };

let bucket: Bucket;
let secrets: Map<string, Secret>;
let store: ReturnType<typeof s3Store>;
beforeEach(() => {
  bucket = new Bucket();
  secrets = new Map();
  const client = {
    getOrUndefined: async (_: unknown, { name }: ObjectRef) => secrets.get(name),
    create: async (_: unknown, secret: Secret) => secrets.set(secret.metadata?.name ?? "", secret),
  };
  store = s3Store(
    client as unknown as KubeClient,
    () => settings,
    () => bucket as unknown as S3,
  );
});

const urls = (): { parts: string[]; get: string } =>
  JSON.parse(Buffer.from(secrets.get(job.name)?.data["urls.json"] ?? "", "base64").toString());
const result = (sizeBytes: number, parts: number) => ({ ok: true, sizeBytes, sha256: "ab", parts }) as const;

describe("a backup in a bucket", () => {
  test("is put together from the parts that the last try has uploaded", async () => {
    await store.openWrite(job, backup, 10, signal);
    const [one = "", two = "", three = ""] = urls().parts;
    for (const [url, size] of [
      [one, 5],
      [two, 5],
      [three, 5],
    ] as const) {
      bucket.put(url, size);
    }
    // The next try has less to say.
    bucket.put(one, 5);
    bucket.put(two, 3);
    expect(await store.commit(job, backup, result(8, 2), signal)).toBeUndefined();
    expect(bucket.objects.get(KEY)).toBe(8);
    expect(store.place(backup)).toEqual({
      location: `s3://backups/${KEY}`,
      bucket: {
        endpoint: "https://s3.example.com",
        region: "us-east-1",
        name: "backups",
        key: KEY,
        forcePathStyle: true,
      },
    });
  });

  test("is none while a part is missing", async () => {
    await store.openWrite(job, backup, 10, signal);
    bucket.put(urls().parts[0] ?? "", 5);
    expect(await store.commit(job, backup, result(10, 2), signal)).toMatch(/every part/);
    expect(bucket.objects.size).toBe(0);
  });

  test("is none while a part is another one than the pod has sent", async () => {
    await store.openWrite(job, backup, 10, signal);
    bucket.put(urls().parts[0] ?? "", 5);
    const etags = (await bucket.listParts(KEY, "u1")).map(({ etag }) => etag);
    const uploaded = { ...result(5, 1), etags: etagsHash(etags) };
    bucket.put(urls().parts[0] ?? "", 5, "cut off");
    expect(await store.commit(job, backup, uploaded, signal)).toMatch(/other parts/);
    expect(bucket.objects.size).toBe(0);
  });

  test("exists when the operator was killed before it could report it", async () => {
    await store.openWrite(job, backup, 10, signal);
    bucket.put(urls().parts[0] ?? "", 5);
    await store.commit(job, backup, result(5, 1), signal);
    expect(await store.commit(job, backup, result(5, 1), signal)).toBeUndefined();
    expect(await store.commit(job, backup, result(6, 1), signal)).toMatch(/does not have/);
  });

  test("leaves no upload behind that an operator had begun before it was killed", async () => {
    await bucket.createUpload(KEY);
    await store.openWrite(job, backup, 10, signal);
    await store.openWrite(job, backup, 10, signal);
    expect(await bucket.listUploads(KEY)).toEqual(["u2"]);
    await store.erase(backup, signal);
    expect(bucket.uploads.size + bucket.objects.size).toBe(0);
  });

  test("is read by a URL of its own alone", async () => {
    expect(await store.openRead(job, backup, signal)).toEqual({ kind: "urls", partBytes: 0 });
    expect(urls()).toEqual({ get: `get ${KEY}` });
  });
});

describe("a backup that is in a bucket already", () => {
  const later = parseBackupSettings(
    "image: o\nstore: s3\ns3: { endpoint: https://other.example.com, bucket: newer, region: eu-1, prefix: b/ }",
  );
  const of = (status: object): Backup => ({ ...backup, status: { observedGeneration: 1, ...status } });

  // Shows: docs/backups.md#how-it-works: It is read, verified and deleted there, even if the settings change
  test("stays in the bucket, at the endpoint and under the key that it has, whatever the settings say by then", () => {
    const { bucket: begun, location } = store.place(backup);
    expect(objectOf(of({ bucket: begun, location }), later)).toEqual(begun);
    expect(objectOf(of({ bucket: begun, location }), { ...later, s3: undefined })).toEqual(begun);
    expect(objectOf(backup, later)).toMatchObject({ name: "newer", key: "b/acme/shop/shop-b1.dump" });
  });

  test("from before its bucket was written down is where its location says", () => {
    const old = objectOf(of({ location: `s3://backups/${KEY}` }), later);
    expect(old).toMatchObject({ endpoint: "https://other.example.com", name: "backups", key: KEY });
  });

  test("is found, read and removed there", async () => {
    const asked: string[] = [];
    const moved = s3Store(
      { getOrUndefined: async () => undefined, create: async () => {} } as unknown as KubeClient,
      () => later,
      ({ endpoint, name }) => {
        asked.push(`${endpoint} ${name}`);
        return bucket as unknown as S3;
      },
    );
    bucket.objects.set(KEY, 5);
    const stored = of(store.place(backup));
    expect(await moved.has(stored, signal)).toBe(true);
    await moved.openRead(job, stored, signal);
    await moved.erase(stored, signal);
    expect(await moved.has(stored, signal)).toBe(false);
    expect(new Set(asked)).toEqual(new Set(["https://s3.example.com backups"]));
  });
});

test("pods of backups may reach a store that tenants are denied, and nowhere else", () => {
  expect(storePolicy("slipway-org-acme", settings)).toBeUndefined();
  const inside = parseBackupSettings(
    "image: o\nstore: s3\ns3: { endpoint: http://10.1.1.1:9000, bucket: backups, networkPolicy: { cidrs: [10.1.1.1/32], port: 9000 } }",
  );
  expect(storePolicy("slipway-org-acme", inside)?.spec).toEqual({
    podSelector: { matchExpressions: [{ key: "slipway.dev/backup", operator: "Exists" }] },
    policyTypes: ["Egress"],
    egress: [{ to: [{ ipBlock: { cidr: "10.1.1.1/32" } }], ports: [{ port: 9000, protocol: "TCP" }] }],
  });
});

// Shows: docs/backups.md#how-it-works: `s3.ca` has the authorities of both, and
test("pods of backups may reach stores of earlier backups, too, each at its own port", () => {
  const moved = (networkPolicy: string) =>
    storePolicy(
      "slipway-org-acme",
      parseBackupSettings(
        `image: o\nstore: s3\ns3: { endpoint: https://s3.example.com, bucket: backups, networkPolicy: ${networkPolicy} }`,
      ),
    )?.spec;
  const earlier = "earlier: [{ cidrs: [10.1.1.1/32], port: 9000 }]";
  const old = { to: [{ ipBlock: { cidr: "10.1.1.1/32" } }], ports: [{ port: 9000, protocol: "TCP" }] };
  const now = { to: [{ ipBlock: { cidr: "10.2.2.0/24" } }], ports: [{ port: 443, protocol: "TCP" }] };
  expect(moved(`{ cidrs: [10.2.2.0/24], ${earlier} }`)).toMatchObject({ egress: [now, old] });
  // The store of today is in the outside world.
  expect(moved(`{ ${earlier} }`)).toMatchObject({ egress: [old] });
  expect(() => moved("{ earlier: [{ cidrs: [], port: 9000 }] }")).toThrow(/cidrs/);
});

test("every database fits into the parts that there are URLs of", () => {
  for (const gb of [1, 10, 250, 4_000]) {
    expect(partBytesOf(gb) * 1_000).toBeGreaterThan(gb * 2 ** 30);
  }
  expect(partBytesOf(1)).toBe(16 * 2 ** 20);
});
