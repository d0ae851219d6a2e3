import { request } from "undici";
import { expect } from "vitest";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { stack } from "./stack.ts";

/** A request through the ingress to the application that owns `domain`. */
export async function throughIngress(domain: string, path = "/"): Promise<{ status: number; text: string }> {
  const response = await request(`${stack.ingressUrl}${path}`, { headers: { host: domain } });
  return { status: response.statusCode, text: await response.body.text() };
}

/** How long an application that is running may answer 503 all the same, as after the machine was frozen, in milliseconds. */
const SERVING_MS = 15_000;

/**
 * Waits until an application that is running answers otherwise than 503. Its instance may have lost its readiness since, as
 * when the machine was frozen for longer than a probe's timeout: the cluster's state is printed then.
 */
export async function untilServing(domain: string): Promise<void> {
  const began = performance.now();
  const unavailable = async () => (await throughIngress(domain)).status === 503;
  if (!(await unavailable())) {
    return;
  }
  console.log(`${domain} is running and answers 503\n${await describeInstances(domain)}`);
  await eventually(async () => expect(await unavailable()).toBe(false), { within: SERVING_MS, every: 100 });
  console.log(`${domain} answers after ${Math.round(performance.now() - began)} ms`);
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
  if (!name) {
    return `no Ingress leads from ${domain}`;
  }
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
      .map(
        ({ lastTimestamp, eventTime, reason, message }) =>
          `${(lastTimestamp ?? eventTime)?.toISOString()} ${reason}: ${message}`,
      ),
  ].join("\n");
}
