import { type KubeClient, KubeError } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import { exampleClaim } from "../../../test/kit/operator/claims.ts";
import { CertificateChecks, type CertificateView, failureAfter, findingOf } from "./certificates.ts";
import { tlsSecretName } from "./desired/ingress.ts";

const AT = "2026-11-21T12:00:00Z";
const FIRST = { since: "2026-11-01T12:00:00.000Z", message: "first" };
const { signal } = new AbortController();

function certificate(lastFailureTime?: string, message?: string, status = "False"): CertificateView {
  const conditions = [
    { type: "Ready", status: "False", message: "Issuing certificate as Secret does not exist" },
    ...(message === undefined ? [] : [{ type: "Issuing", status, message }]),
  ];
  return { status: { conditions, ...(lastFailureTime === undefined ? {} : { lastFailureTime }) } };
}

test.each<[string, CertificateView, ReturnType<typeof findingOf>]>([
  ["without a status", {}, "none"],
  ["that is being issued", certificate(undefined, "Issuing", "True"), "none"],
  [
    "that has failed",
    certificate(AT, "no TXT record"),
    { at: "2026-11-21T12:00:00.000Z", message: "no TXT record" },
  ],
  [
    "that has failed at a server of the platform",
    certificate(AT, "POST https://vault.internal:8200/v1/pki answers 403"),
    { at: "2026-11-21T12:00:00.000Z", message: "POST […] answers 403" },
  ],
  [
    "that has failed, and says nothing",
    certificate(AT, ""),
    { at: "2026-11-21T12:00:00.000Z", message: "The issuer did not issue the certificate." },
  ],
  ["that is retried", certificate(AT, "Renewing certificate as it expires soon", "True"), "retried"],
  ["that has failed, and is about to be retried", certificate(AT), "retried"],
  ["whose time is not understood", certificate("yesterday", "x"), "none"],
])("a certificate %s", (_, view, finding) => {
  expect(findingOf(view, "shop.example.com")).toEqual(finding);
});

/** Checks of a cluster that answers with what is set, and counts how often it is asked. */
function checks() {
  const state = { now: 0, answer: certificate(AT, "x") as CertificateView | undefined | Error };
  const asked: unknown[] = [];
  const client = {
    getOrUndefined: async (_: unknown, ref: unknown) => {
      asked.push(ref);
      if (state.answer instanceof Error) {
        throw state.answer;
      }
      return state.answer;
    },
  } as unknown as KubeClient;
  return { state, asked, checks: new CertificateChecks({ client, clock: { monotonic: () => state.now } }) };
}

const FOUND = { at: "2026-11-21T12:00:00.000Z", message: "x" };

test("a certificate that is waited for is read each minute, one in place each hour, however often its claim is reconciled", async () => {
  const { state, asked, checks: one } = checks();
  const claim = exampleClaim();
  expect(await one.check(claim, "pending_issuance", signal)).toEqual({ found: FOUND, againInMs: 60_000 });
  expect(asked).toEqual([{ namespace: "slipway-org-alpha", name: tlsSecretName("p1", claim.spec.hostname) }]);
  state.now = 20_000;
  state.answer = undefined;
  // A status that could not be written gets it again.
  expect(await one.check(claim, "pending_issuance", signal)).toEqual({ found: FOUND, againInMs: 40_000 });
  state.now = 60_000;
  expect(await one.check(claim, "pending_issuance", signal)).toEqual({ found: "none", againInMs: 60_000 });
  const issued = { found: "none", againInMs: 3_600_000 };
  expect(await one.check(claim, "active", signal)).toEqual(issued);
  state.now += 3_599_999;
  expect(await one.check(claim, "active", signal)).toEqual({ found: "none", againInMs: 1 });
  expect(asked).toHaveLength(3);
  // Another claim of the same hostname, and one after it was deleted.
  const metadata = { ...claim.metadata, uid: "other" };
  expect(await one.check({ ...claim, metadata }, "active", signal)).toEqual(issued);
  one.forget(claim.spec.hostname);
  expect(await one.check({ ...claim, metadata }, "active", signal)).toEqual(issued);
  expect(asked).toHaveLength(5);
});

test("a certificate is read as soon as it is in place, and soon again where it is still retried", async () => {
  const { state, checks: one } = checks();
  const claim = exampleClaim();
  await one.check(claim, "pending_issuance", signal);
  state.now = 1;
  state.answer = certificate(AT, "Issuing certificate as Secret does not exist", "True");
  expect(await one.check(claim, "active", signal)).toEqual({ found: "retried", againInMs: 60_000 });
  state.now += 60_000;
  state.answer = certificate();
  expect(await one.check(claim, "active", signal)).toEqual({ found: "none", againInMs: 3_600_000 });
});

test.each<[string, ...Parameters<typeof failureAfter>, ReturnType<typeof failureAfter>]>([
  ["the first failure", undefined, FOUND, "pending_issuance", { since: FOUND.at, message: "x" }],
  ["the first one alone", FIRST, FOUND, "pending_issuance", FIRST],
  ["nothing else while it is retried", FIRST, "retried", "active", FIRST],
  ["it where the Certificate was created again", FIRST, "none", "pending_issuance", FIRST],
  ["it while ownership is lost", FIRST, undefined, "pending_validation", FIRST],
  ["it while the project is not known", FIRST, undefined, undefined, FIRST],
  ["it while the cluster does not answer", FIRST, undefined, "active", FIRST],
  ["none once the certificate is issued", FIRST, "none", "active", undefined],
  ["none where the platform issues none", FIRST, undefined, "disabled", undefined],
])("a claim records %s", (_, before, found, sslStatus, after) => {
  expect(failureAfter(before, found, sslStatus)).toEqual(after);
});

test("nothing is read of a domain without a route, or where the platform issues no certificates", async () => {
  const { asked, checks: one } = checks();
  for (const sslStatus of ["disabled", "pending_validation", "failed", undefined] as const) {
    expect(await one.check(exampleClaim(), sslStatus, signal)).toEqual({});
  }
  expect(asked).toEqual([]);
});

test("a cluster that refuses or does not answer says nothing, and is asked again later", async () => {
  const { state, checks: one } = checks();
  state.answer = new KubeError({ status: 403, reason: "Forbidden", message: "forbidden" });
  expect(await one.check(exampleClaim(), "pending_issuance", signal)).toEqual({ againInMs: 60_000 });
  expect(await one.check(exampleClaim(), "active", signal)).toEqual({ againInMs: 3_600_000 });
  // A failure that is recorded may have ended.
  const failed = exampleClaim("failed.example.com", { status: { certificateFailure: FIRST } });
  expect(await one.check(failed, "active", signal)).toEqual({ againInMs: 60_000 });
});
