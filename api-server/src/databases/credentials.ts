import { randomInt } from "node:crypto";
import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { completeCredentials, type DatabaseCredentials, databaseNames, type EngineName } from "@slipway/crds";

/** The Secret with a database's accounts. What is in it is never logged, nor kept anywhere else. */

export interface CredentialsSecret extends KubernetesObject {
  data?: Readonly<Record<string, string>>;
}

/** Content of a Secret as the cluster gives it. */
export function decodeCredentials({ data = {} }: CredentialsSecret): DatabaseCredentials {
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")]),
  );
}

/** Content for a Secret. */
export function encodeCredentials(credentials: DatabaseCredentials): Record<string, string> {
  return Object.fromEntries(
    Object.entries(credentials).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
  );
}

/** New passwords for every account of an engine. */
export function newCredentials(engine: EngineName): DatabaseCredentials {
  return completeCredentials(engine, {}, randomInt);
}

/** The Secret as it is live; undefined when there is none. @throws KubeError */
export function readCredentialsSecret(
  kube: KubeClient,
  { namespace, name }: { namespace?: string | undefined; name: string },
): Promise<CredentialsSecret | undefined> {
  const ref = { namespace, name: databaseNames(name).credentials };
  return kube.getOrUndefined<CredentialsSecret>(resources.secrets, ref);
}
