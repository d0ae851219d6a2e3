import { expect, test } from "vitest";
import type { AllowList } from "./access.ts";
import { ingressMetadata, isRestricted, middleware } from "./access-list.ts";
import type { HttpRoute, RoutedApp } from "./app.ts";

const list = ["192.0.2.0/24", "2001:db8::/32"];

function example(allowList: AllowList, admitted: readonly string[] | undefined) {
  const route: HttpRoute = {
    host: "shop.apps.test",
    customHosts: [],
    ingressClass: "traefik",
    annotations: { "example.com/kept": "yes" },
    ingressNamespace: "slipway-ingress",
    admitted,
    allowList,
  };
  const app: RoutedApp = {
    type: "http",
    id: "p1",
    namespace: "slipway-org-alpha",
    organizationId: "alpha",
    route,
  };
  return { app, route, ingress: { metadata: ingressMetadata(app, route) }, middleware: middleware(app) };
}
const is = (live: ReturnType<typeof example>, wanted: ReturnType<typeof example>) =>
  isRestricted(live.ingress, live.middleware, wanted.app, wanted.route);

test.each(["traefik", "nginx"] as const)("%s: a route is restricted that carries exactly the list", (by) => {
  const wanted = example(by, list);
  expect(is(wanted, wanted)).toBe(true);
  expect(is(example(by, undefined), wanted)).toBe(false);
  expect(is(example(by, ["0.0.0.0/0"]), wanted)).toBe(false);
  expect(is(example(by, list.slice(1)), wanted)).toBe(false);
  expect(is(wanted, example(by, undefined))).toBe(true);
});

test("Traefik: an Ingress that names no Middleware, or a deleted one, is not restricted", () => {
  const wanted = example("traefik", list);
  expect(isRestricted({ metadata: {} }, wanted.middleware, wanted.app, wanted.route)).toBe(false);
  expect(isRestricted(wanted.ingress, undefined, wanted.app, wanted.route)).toBe(false);
});

test("nothing is restricted by an ingress that enforces no lists", () => {
  const { app, route } = example("nginx", list);
  const ingress = { metadata: ingressMetadata(app, route) };
  expect(isRestricted(ingress, undefined, app, { ...route, allowList: "none" })).toBe(false);
});
