/** How an ingress controller is told whom to admit: an annotation of every Ingress, and what the annotation names. */

import { equalJson, type KubernetesObject } from "@slipway/controller-runtime";
import type { DesiredObject } from "../desired.ts";
import { middlewareResource } from "../resources.ts";
import { childMetadata } from "../workload/app.ts";
import type { AllowList } from "./access.ts";
import type { HttpRoute, RoutedApp } from "./app.ts";

/** Of Traefik: the Middlewares that a request passes, in order. */
const TRAEFIK_middlewareResource = "traefik.ingress.kubernetes.io/router.middlewares";
/** Of ingress-nginx: the addresses that may ask. */
const NGINX_ALLOW_LIST = "nginx.ingress.kubernetes.io/whitelist-source-range";

/** Annotations that cannot be the platform's for every Ingress where they are a project's own. */
export const OWN_ANNOTATIONS: Readonly<Record<AllowList, readonly string[]>> = {
  traefik: [],
  nginx: [NGINX_ALLOW_LIST, "nginx.ingress.kubernetes.io/allowlist-source-range"],
  none: [],
};

/** What Traefik asks before it passes a request on; none for a project that everybody may reach. */
export function middleware(app: RoutedApp): DesiredObject | undefined {
  const { allowList, admitted } = app.route ?? {};
  if (allowList !== "traefik" || admitted === undefined) {
    return undefined;
  }
  return {
    apiVersion: `${middlewareResource.group}/${middlewareResource.version}`,
    kind: middlewareResource.kind,
    metadata: childMetadata(app),
    spec: { ipAllowList: { sourceRange: [...admitted] } },
  };
}

/**
 * Metadata of an Ingress of a project, whatever host it leads from: the platform's annotations and the project's access
 * list. Every Ingress takes it from here, so that no host leads around the list.
 * @throws Error for a list that this platform cannot enforce: such a project is refused before
 */
export function ingressMetadata(app: RoutedApp, route: HttpRoute) {
  const annotations = { ...route.annotations, ...accessAnnotations(app, route) };
  const metadata = childMetadata(app);
  return Object.keys(annotations).length > 0 ? { ...metadata, annotations } : metadata;
}

/** A live Middleware, as far as it is read here. */
export type MiddlewareView = KubernetesObject & { spec?: { ipAllowList?: { sourceRange?: string[] } } };

/** Whether a live Ingress admits those alone whom the route admits. */
export function isRestricted(
  ingress: KubernetesObject,
  middleware: MiddlewareView | undefined,
  app: RoutedApp,
  route: HttpRoute,
): boolean {
  const { admitted, allowList } = route;
  if (admitted === undefined) {
    return true;
  }
  if (allowList === "none") {
    return false;
  }
  const told = Object.entries(accessAnnotations(app, route)).every(
    ([key, value]) => ingress.metadata?.annotations?.[key] === value,
  );
  return told && (allowList !== "traefik" || equalJson(middleware?.spec?.ipAllowList?.sourceRange, admitted));
}

function accessAnnotations(
  app: RoutedApp,
  { allowList, admitted, annotations }: HttpRoute,
): Record<string, string> {
  if (admitted === undefined) {
    return {};
  }
  switch (allowList) {
    case "traefik": {
      // First of all: who may not come sees nothing of what else the platform has put there.
      const others = annotations[TRAEFIK_middlewareResource];
      const own = `${app.namespace}-${app.id}@kubernetescrd`;
      return { [TRAEFIK_middlewareResource]: others ? `${own},${others}` : own };
    }
    case "nginx":
      return { [NGINX_ALLOW_LIST]: admitted.join(",") };
    case "none":
      throw new Error("an access list that nothing enforces");
  }
}
