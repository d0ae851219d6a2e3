/** Labels that name the passwords of databases among a Secret's values, by their keyed hashes, and the index by them. Pure. */

import type { KubernetesObject } from "@slipway/controller-runtime";
import { PASSWORD_LABEL_PREFIX, passwordLabel } from "@slipway/crds";

/** Index of Secrets by the passwords of databases among their values. */
export const BY_PASSWORD = "password";

/** Key in that index. */
export const passwordKey = (namespace: string | undefined, databaseId: string, hash: string): string =>
  `${namespace}/${databaseId}/${hash}`;

/** Keys of a Secret in that index. */
export function passwordKeysOf({ metadata }: KubernetesObject): string[] {
  return Object.entries(metadata?.labels ?? {})
    .filter(([key]) => key.startsWith(PASSWORD_LABEL_PREFIX))
    .map(([key, hash]) => passwordKey(metadata?.namespace, key.slice(PASSWORD_LABEL_PREFIX.length), hash));
}

/** Labels for a Secret with these passwords. @param hashes by id of the database */
export function passwordLabels(hashes: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries([...hashes].map(([id, hash]) => [passwordLabel(id), hash]));
}

/** The labels about passwords that a Secret is to have, and another state of it has not. */
export function missingPasswordLabels(
  { metadata: wanted }: KubernetesObject,
  { metadata: seen }: KubernetesObject,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(wanted?.labels ?? {}).filter(
      ([key, hash]) => key.startsWith(PASSWORD_LABEL_PREFIX) && seen?.labels?.[key] !== hash,
    ),
  );
}
