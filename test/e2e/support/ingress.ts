import { request } from "undici";
import { cluster } from "./cluster.ts";
import { stack } from "./stack.ts";

/** A request through the ingress to the application that owns `domain`. */
export async function throughIngress(domain: string, path = "/"): Promise<{ status: number; text: string }> {
  const response = await request(`${stack.ingressUrl}${path}`, { headers: { host: domain } });
  return { status: response.statusCode, text: await response.body.text() };
}

/** What the cluster says of the application that owns `domain`, for a failure's message: its pods, endpoints and events. */
export async function describeInstances(domain: string): Promise<string> {
  const [ingresses, pods, slices, events] = await Promise.all([
    cluster.networking.listIngressForAllNamespaces(),
    cluster.core.listPodForAllNamespaces(),
    cluster.discovery.listEndpointSliceForAllNamespaces(),
    cluster.core.listEventForAllNamespaces(),
  ]);
  const ingress = ingresses.items.find(({ spec }) => spec?.rules?.some(({ host }) => host === domain));
  const name = ingress?.spec?.rules?.[0]?.http?.paths[0]?.backend.service?.name;
  if (!name) return `no Ingress leads from ${domain}`;
  const isOf = (object: { metadata?: { namespace?: string; name?: string } }) =>
    object.metadata?.namespace === ingress.metadata?.namespace && object.metadata?.name?.startsWith(name);
  return [
    `now ${new Date().toISOString()}`,
    ...pods.items.filter(isOf).map(({ metadata, status }) => {
      const conditions = status?.conditions?.map(
        ({ type, status: is, lastTransitionTime }) =>
          `${type}=${is} since ${lastTransitionTime?.toISOString()}`,
      );
      return `pod ${metadata?.name}: ${status?.phase}, ${conditions?.join(", ")}`;
    }),
    ...slices.items
      .filter(isOf)
      .map(({ metadata, endpoints }) => `slice ${metadata?.name}: ${JSON.stringify(endpoints)}`),
    ...events.items
      .filter(({ involvedObject }) => isOf({ metadata: involvedObject }))
      .map(({ lastTimestamp, reason, message }) => `${lastTimestamp?.toISOString()} ${reason}: ${message}`),
  ].join("\n");
}
