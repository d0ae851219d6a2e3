import type { DesiredObject } from "../../desired.ts";
import { childMetadata, type HttpApp } from "./app.ts";

/** The public route of an HTTP project; none for a private one. Applied only once the hostname is claimed. */
export function ingress(app: HttpApp): DesiredObject | undefined {
  if (!app.route) {
    return undefined;
  }
  const { host, ingressClass, annotations } = app.route;
  const metadata = childMetadata(app);
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata:
      Object.keys(annotations).length > 0 ? { ...metadata, annotations: { ...annotations } } : metadata,
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
