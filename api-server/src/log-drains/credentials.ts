import { randomBytes } from "node:crypto";
import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  API_VERSION,
  CLIENT_CERTIFICATE_KEY,
  CLIENT_KEY_KEY,
  type createLogDrainBody,
  HEADER_KEY_PREFIX,
  type LogDrain,
  labels,
  MANAGED_BY,
  organizationOfNamespace,
  type patchLogDrainBody,
} from "@slipway/crds";
import type { z } from "zod";
import { withClusterErrors } from "../organizations/cluster-errors.ts";
import { WRITE } from "./cluster.ts";

/** Headers and client certificates of drains, in Secrets. A Secret is never changed: others are in another one, which a drain names in one write with its receiver. */

const CREDENTIALS = "-credentials-";

/** A name for a Secret that `/v1` keeps a drain's credentials in. */
export const newCredentialsName = (drainId: string): string =>
  `${drainId}${CREDENTIALS}${randomBytes(4).toString("hex")}`;

type Given = Pick<z.output<typeof createLogDrainBody>, "headers" | "client_certificate">;
type Changed = Pick<z.output<typeof patchLogDrainBody>, "headers" | "client_certificate">;
/** A Secret's data. */
export type CredentialsData = Readonly<Record<string, string>>;

const encode = (value: string): string => Buffer.from(value).toString("base64");
const isHeader = (key: string): boolean => key.startsWith(HEADER_KEY_PREFIX);

/** A Secret's data for what a body has. Pure. */
export function dataOf({ headers = [], client_certificate: certificate }: Given): CredentialsData {
  return {
    ...Object.fromEntries(headers.map(({ name, value }) => [`${HEADER_KEY_PREFIX}${name}`, encode(value)])),
    ...(certificate === undefined
      ? {}
      : {
          [CLIENT_CERTIFICATE_KEY]: encode(certificate.certificate),
          [CLIENT_KEY_KEY]: encode(certificate.key),
        }),
  };
}

/** Members of a body that have to replace these credentials, so that none of them is sent elsewhere. Pure. */
export function membersMissing(live: CredentialsData, { headers, client_certificate }: Changed): string[] {
  const keys = Object.keys(live);
  return [
    ...(keys.some(isHeader) && headers === undefined ? ["headers"] : []),
    ...(keys.some((key) => !isHeader(key)) && client_certificate === undefined ? ["client_certificate"] : []),
  ];
}

/** Credentials after a change: what is absent of it stays. Pure. */
export function changedData(live: CredentialsData, changed: Changed): CredentialsData {
  const { headers, client_certificate: certificate } = changed;
  const kept = Object.entries(live).filter(([key]) =>
    isHeader(key) ? headers === undefined : certificate === undefined,
  );
  return {
    ...Object.fromEntries(kept),
    ...dataOf({ ...(headers && { headers }), ...(certificate && { client_certificate: certificate }) }),
  };
}

/**
 * The credentials that a drain has now; undefined where its Secret is one that others write.
 * @throws Failure 503
 */
export async function credentialsOf(
  kube: KubeClient,
  { metadata, spec }: LogDrain,
): Promise<CredentialsData | undefined> {
  if (spec.secretRef === undefined) {
    return {};
  }
  const ref = { namespace: metadata.namespace, name: spec.secretRef.name };
  const read = kube.getOrUndefined<KubernetesObject & { data?: CredentialsData }>(resources.secrets, ref);
  const live = await withClusterErrors(read);
  if (live === undefined) {
    // One of these may never have been created, or is lost: the drain gets another.
    return ref.name.startsWith(`${metadata.name}${CREDENTIALS}`) ? {} : undefined;
  }
  return live.metadata?.labels?.[labels.logDrain] === metadata.name ? (live.data ?? {}) : undefined;
}

/** Creates a Secret of a drain, which is deleted with it. @throws Failure 503 */
export async function createCredentials(
  kube: KubeClient,
  { metadata }: LogDrain,
  secretName: string,
  data: CredentialsData,
): Promise<void> {
  const { name, namespace = "", uid = "" } = metadata;
  const owner = { apiVersion: API_VERSION, kind: "LogDrain", name, uid };
  const secret = {
    metadata: {
      name: secretName,
      namespace,
      labels: {
        [labels.managedBy]: MANAGED_BY,
        [labels.organization]: organizationOfNamespace(namespace) ?? "",
        [labels.logDrain]: name,
      },
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: false }],
    },
    type: "Opaque",
    data,
  };
  await withClusterErrors(kube.create(resources.secrets, secret, WRITE));
}

/** Deletes a Secret that a drain names no longer. One that cannot be deleted now is deleted with the drain. Never rejects. */
export async function deleteCredentials(
  kube: KubeClient,
  { metadata }: LogDrain,
  name: string,
): Promise<void> {
  await kube.delete(resources.secrets, { namespace: metadata.namespace, name }).catch(() => {});
}
