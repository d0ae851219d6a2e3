import { ingressMetadata } from "../../applications/access-list.ts";
import type { RoutedApp } from "../../applications/app.ts";
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

/** All requests for a host go to the project's Service. */
export function ruleOf(app: Pick<RoutedApp, "id">, host: string) {
  const backend = { service: { name: app.id, port: { name: "http" } } };
  return { host, http: { paths: [{ path: "/", pathType: "Prefix", backend }] } };
}
