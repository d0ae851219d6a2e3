import { ConditionSet } from "@slipway/controller-runtime";
import type { DomainClaimConditionCatalog, DomainClaimStatus, Project, ProjectStatus } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleClaim } from "../../../test/kit/operator/claims.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { isPlatforms, recordsOf, setRouteConditions, setUnverified, setVerified } from "./status.ts";

const HOST = "shop.example.com";
const ZONE = "apps.example.net";
const now = "2026-01-01T00:00:00Z";

function project(status?: ProjectStatus): Project {
  return { ...exampleProject({ namespace: "slipway-org-alpha", name: "p1" }), status };
}
const entry = (status: "pending" | "active", sslStatus: "disabled" | "pending_issuance" | "active") =>
  project({ customDomains: [{ hostname: HOST, status, sslStatus }] });

/** The conditions of a claim after its project has reported the state of its route. */
function conditionsFor(
  of: Project | undefined,
  verified = true,
  failure?: DomainClaimStatus["certificateFailure"],
): string[] {
  const conditions = new ConditionSet<DomainClaimConditionCatalog>([], { now: new Date(now) });
  if (verified) {
    setVerified("txt", now, {}, conditions);
  } else {
    setUnverified("missing", conditions);
  }
  setRouteConditions(exampleClaim(HOST), of, conditions, failure);
  return conditions.list().map(({ type, status, reason }) => `${type}=${status}/${reason}`);
}

const V = "Verified=True/OwnershipProved";
test.each<[string, string[], Project | undefined, boolean?]>([
  [
    "nothing of the project is known",
    ["Ready=False/RoutePending", "Routed=False/RoutePending", V],
    undefined,
  ],
  [
    "no proof",
    ["Ready=False/TxtRecordMissing", "Routed=False/RoutePending", "Verified=False/TxtRecordMissing"],
    entry("pending", "disabled"),
    false,
  ],
  [
    "routed, and no certificates here",
    ["Ready=True/Ready", "Routed=True/Routed", V],
    entry("active", "disabled"),
  ],
  [
    "routed without its certificate",
    ["Ready=False/CertificatePending", "CertificateReady=False/CertificatePending", "Routed=True/Routed", V],
    entry("active", "pending_issuance"),
  ],
  [
    "routed with its certificate",
    ["Ready=True/Ready", "CertificateReady=True/CertificateIssued", "Routed=True/Routed", V],
    entry("active", "active"),
  ],
])("%s", (_, expected, of, verified) => {
  expect(conditionsFor(of, verified)).toEqual(expected);
});

test("a certificate that could not be issued is not ready for that reason, and one that is in place stays", () => {
  const failure = { since: now, message: "no authorization" };
  expect(conditionsFor(entry("active", "pending_issuance"), true, failure)).toEqual([
    "Ready=False/CertificateFailed",
    "CertificateReady=False/CertificateFailed",
    "Routed=True/Routed",
    V,
  ]);
  expect(conditionsFor(entry("active", "active"), true, failure)).toContain(
    "CertificateReady=True/CertificateIssued",
  );
});

test("a default domain is routed when its project reports so of that very domain", () => {
  const claim = exampleClaim(`shop.${ZONE}`, { spec: { kind: "subdomain" } });
  const routed = (domain: string, status: "True" | "False") => {
    const conditions = new ConditionSet<DomainClaimConditionCatalog>([], { now: new Date(now) });
    const ready = {
      type: "DomainReady",
      status,
      reason: "DomainAssigned",
      message: "",
      lastTransitionTime: now,
    };
    setRouteConditions(claim, project({ domain, conditions: [ready] }), conditions);
    return conditions.isTrue("Routed");
  };
  expect(routed(`shop.${ZONE}`, "True")).toBe(true);
  expect(routed(`shop.${ZONE}`, "False")).toBe(false);
  expect(routed(`other.${ZONE}`, "True")).toBe(false);
});

test("what was proved keeps its moment, and is in no hurry any more", () => {
  const status: DomainClaimStatus = { verifiedAt: "2025-01-01T00:00:00Z", expiresAt: now };
  setVerified("txt", now, status, new ConditionSet<DomainClaimConditionCatalog>([], { now: new Date(now) }));
  expect(status).toEqual({ verifiedAt: "2025-01-01T00:00:00Z", verifiedBy: "txt", expiresAt: undefined });
});

test("only names of the zone need no proof, whatever kind a claim has", () => {
  expect(isPlatforms(exampleClaim(`shop.${ZONE}`, { spec: { kind: "default" } }), ZONE)).toBe(true);
  expect(isPlatforms(exampleClaim(`shop.${ZONE}`), ZONE)).toBe(false);
  expect(isPlatforms(exampleClaim(HOST, { spec: { kind: "default" } }), ZONE)).toBe(false);
});

test("the records point to the domain that the project has, or is to have", () => {
  const target = (of: Project) => recordsOf(exampleClaim(HOST), of, ZONE)?.[1]?.value;
  expect(target(project({ domain: `mine.${ZONE}` }))).toBe(`mine.${ZONE}`);
  expect(target(project())).toMatch(/^example-[0-9a-f]{8}\.apps\.example\.net$/);
  expect(recordsOf(exampleClaim(HOST), undefined, ZONE)).toBeUndefined();
});
