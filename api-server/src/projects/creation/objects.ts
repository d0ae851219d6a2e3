import type { KubernetesObject, ObjectMeta } from "@slipway/controller-runtime";
import {
  API_VERSION,
  annotations,
  type DatabaseCredentials,
  databaseNames,
  labels,
  MANAGED_BY,
  organizationNamespace,
  type Project,
  type ProjectSpec,
} from "@slipway/crds";
import { encodeCredentials } from "../../databases/connection.ts";
import { AWS_REGISTRY_SECRET, type AwsRegistrySecret, type EnvShard, type PullSecret } from "./secrets.ts";

/** The objects that a creation writes. Pure. */

interface AnySecret extends KubernetesObject {
  metadata: ObjectMeta & { name: string; namespace: string };
  type: string;
}

/** Named by what is in it. */
export interface Secret extends AnySecret {
  immutable: true;
  stringData: Record<string, string>;
}

/** A database's accounts: unlike the others it changes, when the password is renewed. */
export interface AccountsSecret extends AnySecret {
  data: Record<string, string>;
}

/** What names a project in the cluster. */
export interface Identity {
  organizationId: string;
  projectId: string;
}

function metadataOf(name: string, { organizationId, projectId }: Identity) {
  return {
    name,
    namespace: organizationNamespace(organizationId),
    labels: {
      [labels.managedBy]: MANAGED_BY,
      [labels.organization]: organizationId,
      [labels.project]: projectId,
    },
  };
}

function secret(name: string, type: string, stringData: Record<string, string>, identity: Identity): Secret {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: metadataOf(name, identity),
    type,
    immutable: true,
    stringData,
  };
}

export function envSecret({ name, stringData, positions }: EnvShard, identity: Identity): Secret {
  const created = secret(name, "Opaque", stringData, identity);
  const bytes = Object.entries(stringData).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  );
  created.metadata.annotations = {
    [annotations.envOrder]: positions.join(","),
    [annotations.envBytes]: String(bytes),
  };
  return created;
}

export const imagePullSecret = (pull: PullSecret, identity: Identity): Secret =>
  secret(
    pull.name,
    "kubernetes.io/dockerconfigjson",
    { ".dockerconfigjson": pull.dockerConfigJson },
    identity,
  );

export function accountsSecret(credentials: DatabaseCredentials, identity: Identity): AccountsSecret {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: metadataOf(databaseNames(identity.projectId).credentials, identity),
    type: "Opaque",
    data: encodeCredentials(credentials),
  };
}

export const awsSecret = ({ name, stringData }: AwsRegistrySecret, identity: Identity): Secret =>
  secret(name, AWS_REGISTRY_SECRET, stringData, identity);

export function projectObject(spec: ProjectSpec, identity: Identity): Project {
  return {
    apiVersion: API_VERSION,
    kind: "Project",
    metadata: metadataOf(identity.projectId, identity),
    spec,
  };
}

/** A Secret of a project is deleted with it. */
export function ownedBy(project: Project) {
  const { name, uid = "" } = project.metadata;
  return {
    metadata: {
      ownerReferences: [
        { apiVersion: API_VERSION, kind: "Project", name, uid, controller: false, blockOwnerDeletion: false },
      ],
    },
  };
}
