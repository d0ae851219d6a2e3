/** The Secret with a database's certificate: signed by the platform's authority, renewed well before its end. */

import {
  controllerOf,
  controllerReference,
  hashJson,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { databaseNames, fieldManagers, type Project } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { CERTIFICATE } from "../../projects/secrets.ts";
import { RetryableError } from "../../reconcile-errors.ts";
import { projectResource } from "../../resources.ts";
import { type ChildOwner, childLabels } from "../../workload/app.ts";
import type { Authority } from "./authority.ts";
import { certify, SERVER_DAYS, serialOf } from "./certificates.ts";

/** A third of a certificate's life is left when it is renewed. */
const RENEW_MS = (SERVER_DAYS / 3) * 86_400_000;

/** What the annotation of such a Secret has: all that has to be known without reading it. */
interface Marked {
  serial: string;
  /** When it was signed. */
  signedAt: string;
  notAfter: string;
  /** Hash of the names that it is for. */
  names: string;
  /** Serial of the authority that has signed it. */
  authority: string;
}

export interface CertificateDependencies {
  client: KubeClient;
  clock: Clock;
  secrets: Store;
  authority: Authority;
}

/** The certificate in force. */
export interface Certificate {
  serial: string;
  signedAt: Date;
}

/**
 * Every name under which a database is reached.
 * @param outside host outside the cluster, once it is known
 * @param services names of Services that this engine has beside those that all have
 */
export function certificateNames(
  id: string,
  namespace: string,
  outside?: string,
  services: readonly string[] = [],
): string[] {
  const { main, replicas, nodes } = databaseNames(id);
  const forms = (name: string) => [
    name,
    `${name}.${namespace}`,
    `${name}.${namespace}.svc`,
    `${name}.${namespace}.svc.cluster.local`,
  ];
  return [
    `${main}.${namespace}.svc`,
    ...forms(main),
    ...forms(replicas),
    ...services.flatMap(forms),
    ...forms(nodes).map((name) => `*.${name}`),
    "localhost",
    "127.0.0.1",
    ...(outside === undefined ? [] : [outside]),
  ].filter((name, index, all) => all.indexOf(name) === index);
}

/**
 * Ensures the Secret.
 * @throws RetryableError `ChildConflict` when a Secret of that name has another owner
 */
export async function ensureCertificate(
  project: Project,
  owner: ChildOwner,
  names: readonly string[],
  deps: CertificateDependencies,
  signal: AbortSignal,
): Promise<Certificate> {
  const { client, clock, secrets } = deps;
  const { namespace } = project.metadata;
  const name = databaseNames(owner.id).tls;
  const authority = await deps.authority.current();
  const wanted = { names: hashJson(names), authority: serialOf(authority.certificate) };
  const live =
    secrets.get(namespace, name) ??
    (await client.getOrUndefined(resources.secrets, { namespace, name }, { metadataOnly: true, signal }));
  const now = clock.now();
  const marked = live && markOf(live);
  if (marked && isInForce(marked, wanted, now)) {
    return { serial: marked.serial, signedAt: new Date(marked.signedAt) };
  }
  const holder = live && controllerOf(live);
  if (live && holder?.uid !== project.metadata.uid) {
    throw new RetryableError("ChildConflict", "a Secret of the same name belongs to somebody else");
  }
  const { certificate, key, serial, notAfter } = await certify(authority, names, now);
  const mark: Marked = {
    serial,
    signedAt: now.toISOString(),
    notAfter: notAfter.toISOString(),
    ...wanted,
  };
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const secret: KubernetesObject & { type: string; data: Record<string, string> } = {
    metadata: {
      name,
      namespace,
      labels: childLabels(owner),
      annotations: { [CERTIFICATE]: JSON.stringify(mark) },
      ownerReferences: [controllerReference(project, projectResource)],
    },
    type: "kubernetes.io/tls",
    data: {
      "tls.crt": base64(certificate),
      "tls.key": base64(key),
      "ca.crt": base64(authority.certificate),
    },
  };
  const options = { fieldManager: fieldManagers.project, signal };
  secrets.observe(await client.apply<KubernetesObject>(resources.secrets, secret, options));
  return { serial, signedAt: now };
}

function markOf({ metadata }: KubernetesObject): Marked | undefined {
  try {
    return JSON.parse(metadata?.annotations?.[CERTIFICATE] ?? "") as Marked;
  } catch {
    return undefined;
  }
}

function isInForce(marked: Marked, wanted: Pick<Marked, "names" | "authority">, now: Date): boolean {
  return (
    marked.names === wanted.names &&
    marked.authority === wanted.authority &&
    Date.parse(marked.notAfter) - now.getTime() > RENEW_MS
  );
}
