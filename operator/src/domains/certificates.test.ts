import { type KubeClient, KubeError } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import { exampleClaim } from "../../../test/kit/operator/claims.ts";
import { CertificateChecks, type CertificateView, failureOf } from "./certificates.ts";
import { tlsSecretName } from "./desired/ingress.ts";

const AT = "2026-11-21T12:00:00Z";
const { signal } = new AbortController();

function certificate(lastFailureTime?: string, message?: string): CertificateView {
  const conditions = [
    { type: "Ready", status: "False", message: "Issuing certificate as Secret does not exist" },
    ...(message === undefined ? [] : [{ type: "Issuing", status: "False", message }]),
  ];
  return { status: { conditions, ...(lastFailureTime === undefined ? {} : { lastFailureTime }) } };
}

test.each<[string, CertificateView, ReturnType<typeof failureOf>]>([
  ["without a status", {}, undefined],
  ["that is being issued", certificate(undefined, "Issuing"), undefined],
  [
    "that has failed",
    certificate(AT, "no TXT record"),
    { at: "2026-11-21T12:00:00.000Z", message: "no TXT record" },
  ],
  [
    "that has failed, for a long reason",
    certificate(AT, "x".repeat(5_000)),
    { at: "2026-11-21T12:00:00.000Z", message: "x".repeat(1_024) },
  ],
  [
    "that has failed, and says nothing",
    certificate(AT),
    { at: "2026-11-21T12:00:00.000Z", message: "The issuer did not issue the certificate." },
  ],
  ["of which nobody understands when", certificate("yesterday", "x"), undefined],
])("a certificate %s", (_, view, failure) => {
  expect(failureOf(view)).toEqual(failure);
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

test("a certificate that is waited for is read each minute, one in place each hour, however often its claim is reconciled", async () => {
  const { state, asked, checks: one } = checks();
  const claim = exampleClaim();
  const found = { failure: { at: "2026-11-21T12:00:00.000Z", message: "x" } };
  expect(await one.check(claim, "pending_issuance", signal)).toEqual({ found, againInMs: 60_000 });
  expect(asked).toEqual([{ namespace: "slipway-org-alpha", name: tlsSecretName("p1", claim.spec.hostname) }]);
  state.now = 20_000;
  expect(await one.check(claim, "pending_issuance", signal)).toEqual({ againInMs: 40_000 });
  expect(await one.check(claim, "active", signal)).toEqual({ againInMs: 3_580_000 });
  state.now = 60_000;
  state.answer = undefined;
  const none = { found: { failure: undefined } };
  expect(await one.check(claim, "pending_issuance", signal)).toEqual({ ...none, againInMs: 60_000 });
  // Another claim of the same hostname, and one after it was deleted.
  const metadata = { ...claim.metadata, uid: "other" };
  expect(await one.check({ ...claim, metadata }, "active", signal)).toEqual({
    ...none,
    againInMs: 3_600_000,
  });
  one.forget(claim.spec.hostname);
  expect(await one.check({ ...claim, metadata }, "active", signal)).toMatchObject(none);
  expect(asked).toHaveLength(4);
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
});
