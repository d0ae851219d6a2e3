import {
  isAlreadyExists,
  type KubeClient,
  type KubernetesObject,
  resources,
} from "@slipway/controller-runtime";
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
import { failures } from "../errors/catalog.ts";
import { withClusterErrors } from "../organizations/cluster-errors.ts";
import { WRITE } from "./cluster.ts";

/** Headers and client certificates of drains, in a Secret of each. They are written, and never read back. */

/** Name of the Secret that `/v1` keeps a drain's credentials in. */
export const credentialsSecretName = (drainId: string): string => `${drainId}-credentials`;

type Given = Pick<z.output<typeof createLogDrainBody>, "headers" | "client_certificate">;
type Changed = Pick<z.output<typeof patchLogDrainBody>, "headers" | "client_certificate">;

const encode = (value: string): string => Buffer.from(value).toString("base64");

/** A Secret's data for what a body has. Pure. */
function dataOf({ headers = [], client_certificate: certificate }: Given): Record<string, string> {
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

/** Creates the Secret of a drain, which is deleted with it. @throws Failure 409 when it exists, 503 */
export async function createCredentials(
  kube: KubeClient,
  { metadata }: LogDrain,
  given: Given,
): Promise<void> {
  const { name, namespace = "", uid = "" } = metadata;
  const owner = { apiVersion: API_VERSION, kind: "LogDrain", name, uid };
  const secret = {
    metadata: {
      name: credentialsSecretName(name),
      namespace,
      labels: {
        [labels.managedBy]: MANAGED_BY,
        [labels.organization]: organizationOfNamespace(namespace) ?? "",
        [labels.logDrain]: name,
      },
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: false }],
    },
    type: "Opaque",
    data: dataOf(given),
  };
  const creation = kube.create(resources.secrets, secret, WRITE).catch((error: unknown) => {
    throw isAlreadyExists(error) ? failures.logDrainConflict() : error;
  });
  await withClusterErrors(creation);
}

/**
 * Replaces what a body has of a drain's credentials, in one write.
 * @throws Failure 409 when others write the Secret, or it was changed meanwhile; 503
 */
export async function changeCredentials(kube: KubeClient, drain: LogDrain, changed: Changed): Promise<void> {
  const own = credentialsSecretName(drain.metadata.name);
  const { namespace } = drain.metadata;
  const named = drain.spec.secretRef?.name;
  if (named !== undefined && named !== own) {
    throw failures.logDrainExternal(named);
  }
  const read = kube.getOrUndefined<KubernetesObject & { data?: Record<string, string> }>(resources.secrets, {
    namespace,
    name: own,
  });
  const live = await withClusterErrors(read);
  const { headers, client_certificate: certificate } = changed;
  if (live === undefined) {
    const given = { ...(headers && { headers }), ...(certificate && { client_certificate: certificate }) };
    return createCredentials(kube, drain, given);
  }
  if (live.metadata?.labels?.[labels.logDrain] !== drain.metadata.name) {
    throw failures.logDrainExternal(own);
  }
  const isReplaced = (key: string): boolean =>
    key.startsWith(HEADER_KEY_PREFIX) ? headers !== undefined : certificate !== undefined;
  const removed = Object.keys(live.data ?? {})
    .filter(isReplaced)
    .map((key): [string, string | null] => [key, null]);
  const data = {
    ...Object.fromEntries(removed),
    ...dataOf({ ...(headers && { headers }), ...(certificate && { client_certificate: certificate }) }),
  };
  const { uid, resourceVersion } = live.metadata ?? {};
  const patch = { metadata: { uid, resourceVersion }, data };
  await withClusterErrors(kube.patch(resources.secrets, { namespace, name: own }, patch, WRITE), {
    missing: failures.logDrainConflict,
    conflict: failures.logDrainConflict,
  });
}
