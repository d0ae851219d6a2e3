import { randomInt } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { projectName, subdomain } from "./fields.ts";
import {
  defaultDomain,
  newOrganizationId,
  newProjectId,
  ORGANIZATION_ID,
  organizationNamespace,
  organizationOfNamespace,
  PROJECT_ID,
} from "./names.ts";

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const zone = "apps.localhost";

describe("ids", () => {
  it("are made as the architecture says", () => {
    expect(newProjectId((below) => below - 1)).toBe("p9999999999999999999");
    expect(newOrganizationId(() => 0)).toBe("oaaaaaaaaaaaaaaa");
    const ids = Array.from({ length: 200 }, () => newProjectId(randomInt));
    for (const id of ids) {
      expect(id).toMatch(/^p[a-z0-9]{19}$/);
    }
    for (const id of ids) {
      expect(id).toMatch(PROJECT_ID);
    }
    expect(new Set(ids).size).toBe(200);
    expect(newOrganizationId(randomInt)).toMatch(ORGANIZATION_ID);
  });

  it("lead to a namespace and back", () => {
    fc.assert(
      fc.property(fc.stringMatching(ORGANIZATION_ID), (id) => {
        const namespace = organizationNamespace(id);
        expect(namespace).toMatch(LABEL);
        expect(organizationOfNamespace(namespace)).toBe(id);
      }),
    );
  });

  it.each(["", "A", "-a", "a-", "a.b", "../x", "a".repeat(41)])("refuse %j as an organization", (id) => {
    expect(() => organizationNamespace(id)).toThrow(RangeError);
    expect(organizationOfNamespace(`slipway-org-${id}`)).toBeUndefined();
  });

  it("do not come from other namespaces", () => {
    expect(organizationOfNamespace("kube-system")).toBeUndefined();
  });
});

describe("defaultDomain", () => {
  const names = fc.stringMatching(/^[a-z0-9][a-z0-9-]{4,30}[a-z0-9]$/);

  it("is one valid label in the zone for every valid name and subdomain", () => {
    fc.assert(
      fc.property(
        names,
        fc.option(fc.stringMatching(/^[a-z0-9][a-z0-9-]{1,52}[a-z0-9]$/), { nil: undefined }),
        (name, sub) => {
          expect(projectName.safeParse(name).success).toBe(true);
          if (sub !== undefined) {
            expect(subdomain.safeParse(sub).success).toBe(true);
          }
          const domain = defaultDomain(
            { metadata: { namespace: "slipway-org-a", name: "p1" }, spec: { name, subdomain: sub } },
            zone,
          );
          expect(domain.endsWith(`.${zone}`)).toBe(true);
          expect(domain.slice(0, -zone.length - 1)).toMatch(LABEL);
        },
      ),
    );
  });

  it("is stable, and differs between projects of the same name", () => {
    const of = (namespace: string, name: string) =>
      defaultDomain({ metadata: { namespace, name }, spec: { name: "my-shop" } }, zone);
    // printf slipway-org-a/p1 | sha256sum
    expect(of("slipway-org-a", "p1")).toBe("my-shop-50b03be0.apps.localhost");
    expect(of("slipway-org-a", "p1")).not.toBe(of("slipway-org-a", "p2"));
    expect(of("slipway-org-a", "p1")).not.toBe(of("slipway-org-b", "p1"));
  });

  // Shows: docs/applications.md#project-settings: name: 6 to 32; the domain stays when it changes
  it("stays when the project is renamed, and is restored when a subdomain is removed", () => {
    const metadata = { namespace: "slipway-org-a", name: "p1" };
    const of = (domain: string) =>
      defaultDomain({ metadata, spec: { name: "renamed" }, status: { domain } }, zone);
    expect(of("my-shop-50b03be0.apps.localhost")).toBe("my-shop-50b03be0.apps.localhost");
    expect(of("chosen.apps.localhost")).toBe("renamed-50b03be0.apps.localhost");
  });
});
