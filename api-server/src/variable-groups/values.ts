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
  amount: bytesOf(variables),
});

const bytesOf = (variables: readonly EnvironmentVariable[]): number =>
  variables.reduce((sum, { name, value }) => sum + Buffer.byteLength(name + value), 0);

/** Creates the Secret of a group, which is deleted with it. @throws Failure 409 when it exists, 503 */
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
      annotations: marksOf(variables),
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: false }],
    },
    type: "Opaque",
    data: encoded(variables),
  };
  const creation = kube.create(resources.secrets, secret, WRITE).catch((error: unknown) => {
    throw isAlreadyExists(error) ? failures.variableGroupConflict() : error;
  });
  await withClusterErrors(creation);
}

/** A group's variables, in the order in which they were sent. @throws Failure 409 when the Secret does not exist, 503 */
export async function readValues(kube: KubeClient, group: VariableGroup): Promise<EnvironmentVariable[]> {
  const secret = await secretIfAny(kube, group);
  if (secret === undefined) {
    throw failures.variableGroupIncomplete(group.spec.secretRef.name);
  }
  return variablesOf([secret]);
}

/**
 * The Secret with a group's variables, for {@link replaceValues}; undefined where that is to create it, since the creation of the group was
 * cut short, or somebody deleted it.
 * @throws Failure 409 when others write the Secret, or it does not exist and is none of `/v1`; 503
 */
export async function ownSecret(kube: KubeClient, group: VariableGroup): Promise<StoredSecret | undefined> {
  const { name } = group.metadata;
  const { name: secret } = group.spec.secretRef;
  const live = await secretIfAny(kube, group);
  const own = live?.metadata?.labels ?? {};
  if (live === undefined && secret !== valuesSecretName(name)) {
    throw failures.variableGroupIncomplete(secret);
  }
  if (live !== undefined && (own[labels.variableGroup] !== name || own[labels.managedBy] !== MANAGED_BY)) {
    throw failures.variableGroupExternal(secret);
  }
  return live;
}

/**
 * Replaces all variables of a group in one write. Projects take over what has changed, and nothing when nothing has.
 * @param live the Secret as it was read
 * @throws Failure 409 when it was changed, created or deleted meanwhile; 503
 */
export async function replaceValues(
  kube: KubeClient,
  group: VariableGroup,
  live: StoredSecret | undefined,
  variables: readonly EnvironmentVariable[],
): Promise<void> {
  if (live === undefined) {
    return createValues(kube, group, variables);
  }
  const { namespace } = group.metadata;
  const { name: secret = "", uid, resourceVersion } = live.metadata ?? {};
  const removed = Object.keys(live.data ?? {}).map((key): [string, string | null] => [key, null]);
  const data = Object.fromEntries([...removed, ...Object.entries(encoded(variables))]);
  const patch = { metadata: { uid, resourceVersion, annotations: marksOf(variables) }, data };
  await withClusterErrors(kube.patch(resources.secrets, { namespace, name: secret }, patch, WRITE), {
    missing: () => failures.variableGroupIncomplete(secret),
    conflict: failures.variableGroupConflict,
  });
}

function secretIfAny(kube: KubeClient, { metadata, spec }: VariableGroup): Promise<StoredSecret | undefined> {
  const ref = { namespace: metadata.namespace, name: spec.secretRef.name };
  return withClusterErrors(kube.getOrUndefined<StoredSecret>(resources.secrets, ref));
}

/** What is recorded on a Secret with these variables. */
const marksOf = (variables: readonly EnvironmentVariable[]): Record<string, string> => ({
  [annotations.envOrder]: orderOf(variables),
  [annotations.envBytes]: String(bytesOf(variables)),
});

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
