import type { KubernetesObject } from "../client/types.ts";

type ServiceSpec = { type?: string; selector?: unknown; ports?: unknown };

/**
 * A Service as it is created again: with the ports of nodes that it had, without its cluster's addresses, and without what says who
 * has applied it. Pure.
 */
export function recreatedService({
  apiVersion,
  kind,
  metadata,
  ...object
}: KubernetesObject): KubernetesObject {
  const { type, selector, ports } = (object as { spec?: ServiceSpec }).spec ?? {};
  const { annotations: _, ...rest } = metadata ?? {};
  return { apiVersion, kind, metadata: rest, spec: { type, selector, ports } } as KubernetesObject;
}
