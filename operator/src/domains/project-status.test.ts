import { ConditionSet } from "@slipway/controller-runtime";
import {
  type Condition,
  customDomainRecords,
  type Project,
  type ProjectConditionCatalog,
  projectStatus,
} from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { exampleClaim } from "../../../test/kit/operator/claims.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import {
  type CustomHost,
  type CustomRoute,
  claimedByAnother,
  claimedDomainState,
  customDomainStatuses,
  refusalOf,
  setCustomDomainsReady,
} from "./project-status.ts";

const HOST = "shop.example.com";
const now = new Date("2026-01-08T00:00:00Z");
const platform = { domainZone: "apps.example.net", reservedHostnames: ["admin", "status.example.com"] };

describe("refusalOf", () => {
  test.each(["apps.example.net", "shop.apps.example.net", "admin.apps.example.net", "status.example.com"])(
    "%s is the platform's",
    (name) => {
      expect(refusalOf(name, platform)?.reason).toBe("DomainReserved");
    },
  );

  test.each([HOST, "example.net", "notapps.example.net", "example.com", "admin.example.com"])(
    "%s may be had",
    (name) => {
      expect(refusalOf(name, platform)).toBeUndefined();
    },
  );
});

describe("claimedDomainState", () => {
  function project(expiredAt?: string): Project {
    const example = exampleProject({ namespace: "slipway-org-alpha", name: "p1" }, { customDomains: [HOST] });
    const entry = { hostname: HOST, status: "failed" as const, sslStatus: "failed" as const, expiredAt };
    return { ...example, status: { customDomains: [entry] } };
  }
  function claim(status?: "True" | "False", reason = "TxtRecordMissing") {
    const verified = {
      type: "Verified",
      status,
      reason,
      message: "why",
      lastTransitionTime: "",
    } as Condition;
    return exampleClaim(HOST, { status: status && { conditions: [verified] } });
  }
  const reported = "2026-01-07T00:00:00Z";
  const unverified = (message: string) => ({
    hostname: HOST,
    is: "unverified",
    why: { reason: "DomainUnverified", message },
  });

  test.each<
    [string, CustomHost | undefined | object, string | undefined, ReturnType<typeof claim> | undefined]
  >([
    ["without a claim it is to be claimed", undefined, undefined, undefined],
    [
      "a claim that was not looked up yet",
      unverified("Ownership has not been looked up yet."),
      undefined,
      claim(),
    ],
    ["a claim without a proof has its reason", unverified("why"), undefined, claim("False")],
    ["a proved claim", { hostname: HOST, is: "verified" }, undefined, claim("True", "OwnershipProved")],
    [
      "an expired claim is kept until that is reported",
      { hostname: HOST, is: "expired", at: "2026-01-08T00:00:00Z", kept: true },
      undefined,
      claim("False", "Expired"),
    ],
    [
      "an expired claim whose end is reported may be deleted",
      { hostname: HOST, is: "expired", at: reported, kept: false },
      reported,
      claim("False", "Expired"),
    ],
    [
      "once released it stays so",
      { hostname: HOST, is: "expired", at: reported, kept: false },
      reported,
      undefined,
    ],
    [
      "a claim that is created again counts",
      unverified("Ownership has not been looked up yet."),
      reported,
      claim(),
    ],
  ])("%s", (_, expected, expiredAt, given) => {
    expect(claimedDomainState(HOST, project(expiredAt), given, now)).toEqual(expected);
  });
});

describe("the reported status", () => {
  const verified: CustomHost = { hostname: HOST, is: "verified" };
  const unverified: CustomHost = {
    hostname: HOST,
    is: "unverified",
    why: { reason: "DomainUnverified", message: "No record." },
  };
  const refused: CustomHost = { hostname: HOST, is: "refused", why: claimedByAnother(HOST) };
  const expired: CustomHost = { hostname: HOST, is: "expired", at: "2026-01-08T00:00:00Z", kept: false };
  const missing = { reason: "DomainPending" as const, message: "Not yet.", retryAfterMs: 500 };

  function report(hosts: CustomHost[], issues: boolean, route?: CustomRoute) {
    const routes = new Map(route ? [[HOST, route]] : []);
    const found = { hosts, routes, organization: "alpha", target: "p1.apps.example.net", issues };
    const conditions = new ConditionSet<ProjectConditionCatalog>([], { now });
    setCustomDomainsReady(found, conditions);
    const condition = conditions.get("CustomDomainsReady");
    const customDomains = customDomainStatuses(found);
    projectStatus.parse({ customDomains });
    return {
      entry: customDomains[0],
      condition,
      summary: condition && `${condition.status}/${condition.reason}`,
    };
  }

  test.each<
    [string, CustomHost, CustomRoute | undefined, string, [string, string, string], [string, string, string]]
  >([
    // host, its route; then status, ssl status and the condition with certificates, and without.
    [
      "no proof",
      unverified,
      undefined,
      "No record.",
      ["pending", "pending_validation", "False/DomainUnverified"],
      ["pending", "disabled", "False/DomainUnverified"],
    ],
    [
      "taken",
      refused,
      undefined,
      `${HOST} belongs`,
      ["failed", "failed", "False/DomainTaken"],
      ["failed", "disabled", "False/DomainTaken"],
    ],
    [
      "expired",
      expired,
      undefined,
      "expired",
      ["failed", "failed", "False/DomainExpired"],
      ["failed", "disabled", "False/DomainExpired"],
    ],
    [
      "no route",
      verified,
      { missing, certified: false },
      "Not yet.",
      ["pending", "pending_issuance", "False/DomainPending"],
      ["pending", "disabled", "False/DomainPending"],
    ],
    [
      "no certificate",
      verified,
      { certified: false },
      "certificate",
      ["active", "pending_issuance", "False/CertificatePending"],
      ["active", "disabled", "True/DomainAssigned"],
    ],
    [
      "all",
      verified,
      { certified: true },
      "",
      ["active", "active", "True/DomainAssigned"],
      ["active", "disabled", "True/DomainAssigned"],
    ],
  ])("%s", (_, host, route, message, certified, plain) => {
    for (const [issues, expected] of [
      [true, certified],
      [false, plain],
    ] as const) {
      const { entry, summary } = report([host], issues, route);
      expect([entry?.status, entry?.sslStatus, summary]).toEqual(expected);
      if (summary?.startsWith("False")) {
        expect(entry?.message).toContain(message);
      } else {
        expect(entry?.message).toBeUndefined();
      }
    }
  });

  test("the records point to the default domain, and are not reported of a domain that cannot be claimed", () => {
    const target = "p1.apps.example.net";
    const records = customDomainRecords({ hostname: HOST, organization: "alpha", target });
    expect(report([unverified], false).entry?.dnsRecords).toEqual(records);
    expect(report([refused], false).entry?.dnsRecords).toEqual([]);
  });

  test("the condition names the first obstacle and counts the others; it is absent without domains", () => {
    const { condition } = report(
      [{ ...unverified, hostname: "a.example" }, { ...refused, hostname: "b.example" }, verified],
      false,
      {
        certified: false,
      },
    );
    expect(condition?.message).toBe("a.example: No record. (1 more are not ready.)");
    expect(report([], true).condition).toBeUndefined();
  });
});
