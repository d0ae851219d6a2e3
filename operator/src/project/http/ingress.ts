import type { DesiredObject } from "../../desired.ts";
import { ingressMetadata } from "./accessList.ts";
import type { HttpApp } from "./app.ts";

/** The public route of an HTTP project; none for a private one. Applied only once the hostname is claimed. */
export function ingress(app: HttpApp): DesiredObject | undefined {
  if (!app.route) {
    return undefined;
  }
  const { host, ingressClass } = app.route;
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: ingressMetadata(app, app.route),
    spec: {
      ingressClassName: ingressClass,
      rules: [
        {
          host,
          http: {
            paths: [
              {
                path: "/",
                pathType: "Prefix",
                backend: { service: { name: app.id, port: { name: "http" } } },
              },
            ],
          },
        },
      ],
    },
  };
}
