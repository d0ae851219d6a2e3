/** Access lists as ingress controllers enforce them: an annotation of every Ingress, and the Middleware that it names. */

import { equalJson, type KubernetesObject } from "@slipway/controller-runtime";
import type { DesiredObject } from "../desired.ts";
import { middlewareResource } from "../resources.ts";
import { childMetadata } from "../workload/app.ts";
import type { AllowList } from "./access.ts";
import type { HttpRoute, RoutedApp } from "./app.ts";

/** Of Traefik: the Middlewares that a request passes, in order. */
const TRAEFIK_middlewareResource = "traefik.ingress.kubernetes.io/router.middlewares";
/** Of ingress-nginx: the addresses that are admitted. */
const NGINX_ALLOW_LIST = "nginx.ingress.kubernetes.io/whitelist-source-range";

/** Annotations that cannot be the platform's for every Ingress where they are a project's own. */
export const OWN_ANNOTATIONS: Readonly<Record<AllowList, readonly string[]>> = {
  traefik: [],
  nginx: [NGINX_ALLOW_LIST, "nginx.ingress.kubernetes.io/allowlist-source-range"],
  none: [],
};

/** The Middleware by which Traefik admits requests; none for a project that everybody may reach. */
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
 * Metadata of an Ingress of a project, for any host: the platform's annotations and the project's access list. Every
 * Ingress has it, so that no host bypasses the list.
 * @throws Error for a list that this platform cannot enforce: such a project is refused before
 */
export function ingressMetadata(app: RoutedApp, route: HttpRoute) {
  const annotations = { ...route.annotations, ...accessAnnotations(app, route) };
  const metadata = childMetadata(app);
  return Object.keys(annotations).length > 0 ? { ...metadata, annotations } : metadata;
}

/** A live Middleware, as far as it is read here. */
export type MiddlewareView = KubernetesObject & { spec?: { ipAllowList?: { sourceRange?: string[] } } };

/** Whether a live Ingress admits only the clients that the route admits. */
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
  const isAnnotated = Object.entries(accessAnnotations(app, route)).every(
    ([key, value]) => ingress.metadata?.annotations?.[key] === value,
  );
  return (
    isAnnotated &&
    (allowList !== "traefik" || equalJson(middleware?.spec?.ipAllowList?.sourceRange, admitted))
  );
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
      // The first: a client that is not admitted reaches none of the platform's other Middlewares.
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
