/** Which objects of the cluster a backup has, and what of each. */

import {
  customResource,
  type KubeClient,
  type KubernetesObject,
  type Resource,
  resources,
  withType,
} from "@slipway/controller-runtime";
import { GROUP, labels, ORGANIZATION_NAMESPACE_PREFIX, plurals, VERSION } from "@slipway/crds";
import type { Installation } from "./installation.ts";

const slipway = (kind: keyof typeof plurals, namespaced = true): Resource =>
  customResource(GROUP, VERSION, plurals[kind], kind, namespaced);

export const projectResource = slipway("Project");

/**
 * Kinds that are restored, in an order in which what an object refers to is created before it. Runs are not among them: what was
 * charged is in the ledger, and the container of one that was active is gone.
 */
export const restoredResources: readonly Resource[] = [
  resources.namespaces,
  slipway("GitConnection"),
  slipway("VariableGroup"),
  slipway("LogDrain"),
  projectResource,
  resources.secrets,
  resources.services,
  slipway("Build"),
  slipway("Backup"),
  slipway("DomainClaim", false),
];

/** Secrets of the platform without which tokens, certificates or ids that were given out are worth nothing. */
export const PLATFORM_SECRETS = ["slipway-token-key", "slipway-database-ca", "slipway-registry-key"];
/** Kinds that are read namespace by namespace. */
const IN_ORGANIZATIONS: readonly Resource[] = [resources.secrets, resources.services];
/** Objects a page. */
const PAGE = 100;

type Secret = KubernetesObject & { type?: string };
type Service = KubernetesObject & { spec?: { type?: string } };
type WithPhase = KubernetesObject & { status?: { phase?: string; bucket?: unknown } };

/** Every object that a backup has, page by page. */
export async function* objectsOf({ client, namespace }: Installation): AsyncGenerator<KubernetesObject> {
  for (const name of PLATFORM_SECRETS) {
    const found = await client.getOrUndefined(resources.secrets, { namespace, name });
    if (found) {
      yield kept(withType(found, resources.secrets));
    }
  }
  const organizations: string[] = [];
  for (const resource of restoredResources) {
    // Of other namespaces nobody needs a right to read Secrets.
    const namespaces = IN_ORGANIZATIONS.includes(resource) ? organizations : [undefined];
    for (const one of namespaces) {
      for await (const object of pages(client, resource, one)) {
        if (resource === resources.namespaces) {
          organizations.push(object.metadata?.name ?? "");
        }
        if (isKept(resource, object)) {
          yield kept(withType(object, resource));
        }
      }
    }
  }
}

/** Every object of a kind; of namespaces, those of organizations. */
async function* pages(client: KubeClient, resource: Resource, namespace?: string) {
  const labelSelector = resource === resources.namespaces ? `${labels.role}=organization` : undefined;
  let next: string | undefined;
  do {
    const page = await client.list(resource, { namespace, limit: PAGE, continue: next, labelSelector });
    yield* page.items;
    next = page.metadata.continue;
  } while (next);
}

/** Whether an object that was listed is restored. Pure. */
export function isKept(resource: Resource, object: KubernetesObject): boolean {
  if (object.metadata?.deletionTimestamp) {
    return false;
  }
  const { phase, bucket } = (object as WithPhase).status ?? {};
  switch (resource.kind) {
    case "Secret":
      return isKeptSecret(object as Secret);
    case "Service":
      // The port of a node that clients of a database know. The operator creates the others again.
      return isOfOrganization(object) && (object as Service).spec?.type === "NodePort";
    case "Build":
      return phase === "success" || phase === "failed" || phase === "superseded";
    case "Backup":
      // A backup on a volume is lost with the volume.
      return phase === "succeeded" && bucket !== undefined;
    default:
      return true;
  }
}

/** Of organizations' namespaces; not those that the cluster, Helm or the operator creates again. */
function isKeptSecret({ metadata, type }: Secret): boolean {
  const controller = metadata?.ownerReferences?.find((owner) => owner.controller);
  const isDerived =
    (type === "kubernetes.io/tls" && controller?.kind === "Project") ||
    controller?.kind === "Job" ||
    // What is kept of a deleted project is worth nothing without its volumes.
    metadata?.labels?.[labels.deletedProject] !== undefined;
  return (
    isOfOrganization({ metadata }) &&
    type !== "kubernetes.io/service-account-token" &&
    type !== "helm.sh/release.v1" &&
    !isDerived
  );
}

const isOfOrganization = ({ metadata }: KubernetesObject): boolean =>
  metadata?.namespace?.startsWith(ORGANIZATION_NAMESPACE_PREFIX) === true;

/** An object without what only the apiserver may set. Its uid stays: the ledger and other objects name it. */
function kept(object: KubernetesObject): KubernetesObject {
  const {
    name,
    namespace,
    uid,
    labels: own,
    annotations,
    finalizers,
    ownerReferences,
  } = object.metadata ?? {};
  const metadata = { name, namespace, uid, labels: own, annotations, finalizers, ownerReferences };
  return { ...object, metadata };
}
