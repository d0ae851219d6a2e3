import { isAlreadyExists, type KubeClient, resources } from "@slipway/controller-runtime";
import {
  API_VERSION,
  annotations,
  type EnvironmentVariable,
  hasReferenceSyntax,
  labels,
  MANAGED_BY,
  organizationOfNamespace,
  type VariableGroup,
} from "@slipway/crds";
import type { Usage } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { withClusterErrors } from "../organizations/cluster-errors.ts";
import { byName } from "../projects/creation/secrets.ts";
import { type StoredSecret, variablesOf } from "../projects/read-envs.ts";
import { WRITE } from "./cluster.ts";

/** The variables of groups, in a Secret of each. */

/** Name of the Secret that `/v1` keeps a group's variables in. */
export const valuesSecretName = (groupId: string): string => `${groupId}-values`;

/** A group's values are literal: what a reference may be resolved to depends on who writes it into which project. @throws Failure 400 */
export function refuseReferences(variables: readonly EnvironmentVariable[]): void {
  const broken = variables.flatMap(({ name, value }) =>
    hasReferenceSyntax(value)
      ? [
          {
            field: `variables.${name}`,
            code: "VARIABLE_GROUP_REFERENCE",
            message: "a variable of a group has no references to projects: write it into the projects",
          },
        ]
      : [],
  );
  if (broken.length > 0) {
    throw failures.validation(broken);
  }
}

/** What the Secret counts for against the organization's bytes of variables. */
export const usageOf = (groupId: string, variables: readonly EnvironmentVariable[]): Usage => ({
  kind: "variableBytes",
  name: valuesSecretName(groupId),
  amount: variables.reduce((sum, { name, value }) => sum + Buffer.byteLength(name + value), 0),
});

/** Creates the Secret of a new group, which is deleted with it. @throws Failure 503 */
export async function createValues(
  kube: KubeClient,
  { metadata }: VariableGroup,
  variables: readonly EnvironmentVariable[],
): Promise<void> {
  const { name, namespace = "", uid = "" } = metadata;
  const owner = { apiVersion: API_VERSION, kind: "VariableGroup", name, uid };
  const secret = {
    metadata: {
      name: valuesSecretName(name),
      namespace,
      labels: {
        [labels.managedBy]: MANAGED_BY,
        [labels.organization]: organizationOfNamespace(namespace) ?? "",
        [labels.variableGroup]: name,
      },
      annotations: { [annotations.envOrder]: orderOf(variables) },
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: false }],
    },
    type: "Opaque",
    data: encoded(variables),
  };
  const creation = kube.create(resources.secrets, secret, WRITE).catch((error: unknown) => {
    if (!isAlreadyExists(error)) {
      throw error;
    }
  });
  await withClusterErrors(creation);
}

/** A group's variables, in the order in which they were sent. @throws Failure 409 when the Secret does not exist, 503 */
export async function readValues(kube: KubeClient, group: VariableGroup): Promise<EnvironmentVariable[]> {
  return variablesOf([await readSecret(kube, group)]);
}

/**
 * Replaces all variables of a group in one write. Projects take over what has changed, and nothing when nothing has.
 * @throws Failure 409 when others write the Secret, or did so meanwhile; 503
 */
export async function replaceValues(
  kube: KubeClient,
  group: VariableGroup,
  variables: readonly EnvironmentVariable[],
): Promise<void> {
  const { name, namespace } = group.metadata;
  const live = await readSecret(kube, group);
  const { name: secret = "", uid, resourceVersion, labels: own = {} } = live.metadata ?? {};
  if (own[labels.variableGroup] !== name || own[labels.managedBy] !== MANAGED_BY) {
    throw failures.variableGroupExternal(secret);
  }
  const removed = Object.keys(live.data ?? {}).map((key): [string, string | null] => [key, null]);
  const data = Object.fromEntries([...removed, ...Object.entries(encoded(variables))]);
  const marks = { [annotations.envOrder]: orderOf(variables) };
  const patch = { metadata: { uid, resourceVersion, annotations: marks }, data };
  await withClusterErrors(kube.patch(resources.secrets, { namespace, name: secret }, patch, WRITE), {
    missing: () => failures.variableGroupIncomplete(secret),
    conflict: failures.variableGroupConflict,
  });
}

async function readSecret(kube: KubeClient, { metadata, spec }: VariableGroup): Promise<StoredSecret> {
  const { name } = spec.secretRef;
  const ref = { namespace: metadata.namespace, name };
  const secret = await withClusterErrors(kube.getOrUndefined<StoredSecret>(resources.secrets, ref));
  if (secret === undefined) {
    throw failures.variableGroupIncomplete(name);
  }
  return secret;
}

/** The data of a Secret with these variables. */
const encoded = (variables: readonly EnvironmentVariable[]): Record<string, string> =>
  Object.fromEntries(variables.map(({ name, value }) => [name, Buffer.from(value).toString("base64")]));

/** Where each variable stood in the list, in the order of their names. */
function orderOf(variables: readonly EnvironmentVariable[]): string {
  return variables
    .map(({ name }, position) => ({ name, position }))
    .sort(byName)
    .map(({ position }) => position)
    .join();
}
