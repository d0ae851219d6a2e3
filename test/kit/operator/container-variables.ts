import {
  type KubeClient,
  type KubernetesObject,
  type ObjectRef,
  resources,
} from "@slipway/controller-runtime";

interface Template {
  spec: { containers: { envFrom?: { secretRef: { name: string } }[] }[] };
}
type Workload = KubernetesObject & {
  spec: { template: Template; jobTemplate: { spec: { template: Template } } };
};

/** Names of the Secrets that the container of a Deployment, Job or CronJob has its variables from; undefined without one. */
export async function envFromOf(
  client: KubeClient,
  ref: ObjectRef,
  resource = resources.deployments,
): Promise<string[] | undefined> {
  const live = await client.getOrUndefined<Workload>(resource, ref);
  const template = live?.spec.jobTemplate?.spec.template ?? live?.spec.template;
  return template?.spec.containers[0]?.envFrom?.map(({ secretRef }) => secretRef.name);
}

/** The variables that a container starts with: of two with one name the later Secret's. */
export async function variablesOf(
  client: KubeClient,
  ref: ObjectRef,
  resource = resources.deployments,
): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of (await envFromOf(client, ref, resource)) ?? []) {
    const secret = { namespace: ref.namespace, name };
    const { data = {} } = await client.get<KubernetesObject & { data?: Record<string, string> }>(
      resources.secrets,
      secret,
    );
    for (const [key, value] of Object.entries(data)) {
      found[key] = Buffer.from(value, "base64").toString();
    }
  }
  return found;
}
