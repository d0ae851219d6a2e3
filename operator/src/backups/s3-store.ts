/**
 * Backups in a bucket. The keys to it never leave the operator: pods are given URLs, each good for one part of one backup, or
 * for reading one, and for as long as their Job may take.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  isAlreadyExists,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
import {
  type Backup,
  type BackupBucket,
  fieldManagers,
  labels,
  organizationOfNamespace,
} from "@slipway/crds";
import type { DesiredObject } from "../desired.ts";
import { etagsHash, type Urls } from "./agent/protocol.ts";
import type { JobPlace } from "./job.ts";
import { fileOf, urlsSecret, workLabels } from "./names.ts";
import { NoBucket, type S3, type S3Credentials } from "./s3.ts";
import type { BackupSettings } from "./settings.ts";
import type { BackupStore, JobRef } from "./store.ts";

/** As many parts as one Secret holds URLs of. */
const MOST_PARTS = 1_000;
const MIB = 2 ** 20;
const SMALLEST_PART = 16 * MIB;
/** A Job begins some time after its URLs are signed. */
const SPARE_SECONDS = 3_600;

type UrlsSecret = KubernetesObject & { type?: string; data?: Record<string, string> };

/** Parts so large that all of a database fits: its volume, and a tenth for what a dump adds. Pure. */
export function partBytesOf(sizeGb: number): number {
  const wanted = Math.ceil((sizeGb * 1.1 * 2 ** 30) / MOST_PARTS);
  return Math.max(SMALLEST_PART, Math.ceil(wanted / MIB) * MIB);
}

/** The object of a backup that is begun now. @throws NoBucket without one in the settings */
function newObject(backup: Backup, { s3 }: BackupSettings): BackupBucket {
  if (!s3) {
    throw new NoBucket();
  }
  const { namespace = "" } = backup.metadata;
  const { endpoint, region, bucket: name, prefix, forcePathStyle } = s3;
  const key = `${prefix}${organizationOfNamespace(namespace) ?? namespace}/${fileOf(backup)}`;
  return { endpoint, region, name, key, forcePathStyle };
}

/** The object of a backup, as its status has it. Those from before that was written have their bucket and key in `location` alone. */
export function objectOf(backup: Backup, settings: BackupSettings): BackupBucket {
  const { bucket, location } = backup.status ?? {};
  if (bucket) {
    return bucket;
  }
  const [, name, key] = location?.match(/^s3:\/\/([^/]+)\/(.+)$/) ?? [];
  const now = newObject(backup, settings);
  return name !== undefined && key !== undefined ? { ...now, name, key } : now;
}

/** @param s3 of an object's store, made again for each call: keys may have changed */
export function s3Store(
  client: KubeClient,
  settings: () => BackupSettings,
  s3: (object: BackupBucket) => S3,
): BackupStore {
  const open = (backup: Backup) => {
    const object = objectOf(backup, settings());
    return { key: object.key, store: s3(object) };
  };
  const seconds = () => settings().deadlineSeconds + SPARE_SECONDS;
  const authority = () => (settings().s3?.ca ? { ca: settings().s3?.ca } : {});

  return {
    place(backup) {
      const bucket = newObject(backup, settings());
      return { location: `s3://${bucket.name}/${bucket.key}`, bucket };
    },
    async has(backup, signal) {
      const { key, store } = open(backup);
      return (await store.sizeOf(key, signal)) !== undefined;
    },
    async openWrite(job, backup, sizeGb, signal): Promise<JobPlace> {
      const { key, store } = open(backup);
      const partBytes = partBytesOf(sizeGb);
      await letOut(client, job.namespace, settings(), signal);
      if (!(await readSecret(client, job, signal))) {
        // What an operator that was killed has begun.
        for (const id of await store.listUploads(key, signal)) {
          await store.abortUpload(key, id, signal);
        }
        const uploadId = await store.createUpload(key, signal);
        const numbers = Array.from({ length: MOST_PARTS }, (_, index) => index + 1);
        const parts = await Promise.all(
          numbers.map((number) => store.partUrl(key, uploadId, number, seconds())),
        );
        await writeSecret(client, job, backup, { parts, ...authority() }, { uploadId }, signal);
      }
      return { kind: "urls", partBytes };
    },
    async openRead(job, backup, signal): Promise<JobPlace> {
      await letOut(client, job.namespace, settings(), signal);
      if (!(await readSecret(client, job, signal))) {
        const { key, store } = open(backup);
        const get = await store.readUrl(key, seconds());
        await writeSecret(client, job, backup, { get, ...authority() }, {}, signal);
      }
      return { kind: "urls", partBytes: 0 };
    },
    async commit(job, backup, result, signal) {
      const { key, store } = open(backup);
      const secret = await readSecret(client, job, signal);
      const uploadId = secret && Buffer.from(secret.data?.uploadId ?? "", "base64").toString();
      const isThere = async () => (await store.sizeOf(key, signal)) === result.sizeBytes;
      // An earlier call may have done it without its answer being received.
      if (!uploadId || !(await store.listUploads(key, signal)).includes(uploadId)) {
        return (await isThere()) ? undefined : "The store does not have what was uploaded.";
      }
      // A try before it may have uploaded more parts.
      const parts = (await store.listParts(key, uploadId, signal)).slice(0, result.parts);
      const bytes = parts.reduce((sum, { size }) => sum + size, 0);
      if (parts.length !== result.parts || bytes !== result.sizeBytes) {
        return "The store does not have every part that was uploaded.";
      }
      // There are stores that take a part whose connection broke for a whole one.
      if (result.etags !== undefined && etagsHash(parts.map(({ etag }) => etag)) !== result.etags) {
        return "The store has other parts than were uploaded.";
      }
      await store.completeUpload(key, uploadId, parts, signal);
      return undefined;
    },
    async erase(backup, signal) {
      const { key, store } = open(backup);
      for (const id of await store.listUploads(key, signal)) {
        await store.abortUpload(key, id, signal);
      }
      await store.deleteObject(key, signal);
      return undefined;
    },
  };
}

function readSecret(client: KubeClient, { name, namespace }: JobRef, signal: AbortSignal) {
  const ref = { name: urlsSecret(name), namespace };
  return client.getOrUndefined<UrlsSecret>(resources.secrets, ref, { signal });
}

async function letOut(
  client: KubeClient,
  namespace: string,
  settings: BackupSettings,
  signal: AbortSignal,
): Promise<void> {
  const policy = storePolicy(namespace, settings);
  if (policy) {
    await client.apply(resources.networkPolicies, policy, { fieldManager: fieldManagers.backup, signal });
  }
}

async function writeSecret(
  client: KubeClient,
  { name, namespace, owner }: JobRef,
  backup: Backup,
  urls: Urls,
  more: Record<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const content = { "urls.json": JSON.stringify(urls), ...more };
  const secret: UrlsSecret = {
    metadata: {
      name: urlsSecret(name),
      namespace,
      labels: workLabels(backup.metadata.name, namespace),
      ownerReferences: [owner],
    },
    type: "Opaque",
    data: Object.fromEntries(
      Object.entries(content).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    ),
  };
  await client
    .create(resources.secrets, secret, { fieldManager: fieldManagers.backup, signal })
    .catch((error: unknown) => {
      if (!isAlreadyExists(error)) {
        throw error;
      }
    });
}

/** Reads the keys of a bucket from the files of a mounted Secret, each time: it may have changed. */
export function mountedCredentials(folder: string | undefined): () => S3Credentials | undefined {
  if (folder === undefined) {
    return () => undefined;
  }
  const read = (name: string) => readFileSync(join(folder, name), "utf8").trim();
  return () => ({ accessKeyId: read("accessKeyId"), secretAccessKey: read("secretAccessKey") });
}

/** Allows pods of backups to reach a store whose addresses tenants are otherwise denied. Pure. */

/** No project's id begins so. */
const NAME = "slipway-backups";

/** Undefined where the namespace's own guards are enough: the store is in the outside world. */
export function storePolicy(namespace: string, { s3 }: BackupSettings): DesiredObject | undefined {
  const { cidrs = [], port = 443, earlier = [] } = s3?.networkPolicy ?? {};
  // One policy for all Jobs of the namespace: one may read from an earlier store while another writes to today's.
  const stores = [{ cidrs, port }, ...earlier].filter((store) => store.cidrs.length > 0);
  if (stores.length === 0) {
    return undefined;
  }
  const { [labels.backup]: _, ...own } = workLabels("", namespace);
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: NAME, namespace, labels: own },
    spec: {
      podSelector: { matchExpressions: [{ key: labels.backup, operator: "Exists" }] },
      policyTypes: ["Egress"],
      egress: stores.map((store) => ({
        to: store.cidrs.map((cidr) => ({ ipBlock: { cidr } })),
        ports: [{ port: store.port, protocol: "TCP" }],
      })),
    },
  };
}
