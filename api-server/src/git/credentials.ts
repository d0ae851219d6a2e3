import { createHash } from "node:crypto";
import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { API_VERSION, type GitConnection, labels, MANAGED_BY } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import { answered, ignoreNotFound, WRITE } from "./cluster.ts";

/** The Secrets with the credentials of Git connections. */

/** The content of a connection's Secret. */
export interface GitCredential {
  username: string;
  token: string;
  /** What deliveries of hooks are signed with. */
  hookSecret: string;
}

type Secret = KubernetesObject & { data?: Record<string, string>; stringData?: Record<string, string> };

/** The credential of a connection. @throws Failure 409 when its Secret is deleted or incomplete, 503 */
export async function readCredential(
  kube: KubeClient,
  { metadata, spec }: GitConnection,
): Promise<GitCredential> {
  const ref = { namespace: metadata.namespace, name: spec.credentialRef.name };
  const secret = await answered(kube.getOrUndefined<Secret>(resources.secrets, ref));
  const value = (key: keyof GitCredential): string =>
    Buffer.from(secret?.data?.[key] ?? "", "base64").toString("utf8");
  const credential = { username: value("username"), token: value("token"), hookSecret: value("hookSecret") };
  // An account of GitHub has no credential but the App's own key.
  if (spec.providerId === "github" && credential.hookSecret !== "") {
    return credential;
  }
  if (credential.username === "" || credential.token === "") {
    throw failures.gitConnectionUnavailable("the connection's Secret is missing or incomplete");
  }
  return credential;
}

/** Creates the Secret, which is deleted with the connection. @throws Failure 503 */
export async function createCredential(
  kube: KubeClient,
  { metadata }: GitConnection,
  name: string,
  credential: Partial<GitCredential>,
): Promise<void> {
  const secret = {
    metadata: {
      name,
      namespace: metadata.namespace,
      labels: { [labels.managedBy]: MANAGED_BY },
      ownerReferences: [
        { apiVersion: API_VERSION, kind: "GitConnection", name: metadata.name, uid: metadata.uid ?? "" },
      ],
    },
    immutable: true,
    type: "Opaque",
    stringData: { ...credential },
  };
  await answered(kube.create(resources.secrets, secret, WRITE));
}

/** Deletes a Secret of a connection; one that is deleted already is no failure. @throws Failure 503 */
export async function deleteCredential(
  kube: KubeClient,
  { metadata }: GitConnection,
  name: string,
): Promise<void> {
  await answered(ignoreNotFound(kube.delete(resources.secrets, { namespace: metadata.namespace, name })));
}

/** The Secret's name has a hash of its content, so that a reader of the connection gets one credential or the other. */
export function credentialName(connectionId: string, credential: Partial<GitCredential>): string {
  const { username, token, hookSecret } = credential;
  const content = JSON.stringify([connectionId, username, token, hookSecret]);
  return `${connectionId}-credential-${createHash("sha256").update(content).digest("hex").slice(0, 12)}`;
}
