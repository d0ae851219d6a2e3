/** The routes of a project: one Ingress for its default domain, and one for each custom domain, which come, go and fail one by one. */

import { createHash } from "node:crypto";
import type { ObjectMeta } from "@slipway/controller-runtime";
import { activatorServiceName, labels, MANAGED_BY } from "@slipway/crds";
import { ingressMetadata } from "../../applications/access-list.ts";
import type { HttpRoute, RoutedApp } from "../../applications/app.ts";
import type { DesiredObject } from "../../desired.ts";

/** The public route of an HTTP project; none for a private one. Applied only once the hostname is claimed. */
export function ingress(app: RoutedApp): DesiredObject | undefined {
  if (app.route?.host === undefined) {
    return undefined;
  }
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: ingressMetadata(app, app.route),
    spec: { ingressClassName: app.route.ingressClass, rules: [ruleOf(app, app.route.host)] },
  };
}

/** All requests for a host go to the project's Service, or to the activator's while it sleeps. */
export function ruleOf({ id, sleep }: Pick<RoutedApp, "id" | "sleep">, host: string) {
  const backend = { service: { name: backendOf(id, sleep?.routed === true), port: { name: "http" } } };
  return { host, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } };
}

/** Name of the Service to which a project's routes lead. */
const backendOf = (id: string, toActivator: boolean): string => (toActivator ? activatorServiceName(id) : id);

/** Name of a custom domain's Ingress. */
export function customIngressName(projectId: string, host: string): string {
  return `${projectId}-${createHash("sha256").update(host).digest("hex").slice(0, 8)}`;
}

/** Name of the Secret in which a custom domain's certificate is kept. */
export function tlsSecretName(projectId: string, host: string): string {
  return `${customIngressName(projectId, host)}-tls`;
}

/** Whether a Secret of a project is one that holds a custom domain's certificate, by its name. */
export function isTlsSecret(projectId: string, name: string): boolean {
  return name.startsWith(`${projectId}-`) && /^[0-9a-f]{8}-tls$/.test(name.slice(projectId.length + 1));
}

/** One Ingress for each custom domain whose ownership is proved. */
export function customIngresses(app: RoutedApp): DesiredObject[] {
  const { route } = app;
  return route ? route.customHosts.map((host) => customIngress(app, route, host)) : [];
}

function customIngress(app: RoutedApp, route: HttpRoute, host: string): DesiredObject {
  const metadata: ObjectMeta = ingressMetadata(app, route);
  const issuer = route.certificateIssuer;
  const annotations = { ...metadata.annotations, ...(issuer === undefined ? {} : issuance(app, issuer)) };
  const name = customIngressName(app.id, host);
  const secretName = tlsSecretName(app.id, host);
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { ...metadata, name, ...(Object.keys(annotations).length > 0 ? { annotations } : {}) },
    spec: {
      ingressClassName: route.ingressClass,
      ...(issuer === undefined ? {} : { tls: [{ hosts: [host], secretName }] }),
      rules: [ruleOf(app, host)],
    },
  };
}

/** Annotations for cert-manager: the issuer, and the labels by which the Secret is known as the project's. */
function issuance({ id, organizationId }: RoutedApp, issuer: string): Record<string, string> {
  const own = {
    [labels.managedBy]: MANAGED_BY,
    [labels.organization]: organizationId,
    [labels.project]: id,
  };
  return {
    "cert-manager.io/cluster-issuer": issuer,
    "cert-manager.io/secret-template": JSON.stringify({ labels: own }),
  };
}
