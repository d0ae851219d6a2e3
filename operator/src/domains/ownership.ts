/** Evaluates whether TXT records prove the ownership of a hostname. Pure. */

import { challengeName, challengeValue, type DomainClaim, organizationOfNamespace } from "@slipway/crds";

/** The result of a TXT look-up; a failed one proves nothing about the records. */
export type TxtAnswer = { records: readonly string[] } | { failed: true };

/** What an answer proves; `another`: that another organization of the platform owns the hostname. */
export type Proof = "proved" | "missing" | "wrong" | "another" | "failed";

/** The name of the TXT record, and the value that it must have. */
export interface Challenge {
  /** Whose it is. */
  organizationId: string;
  name: string;
  value: string;
}

/**
 * The challenge of a claim. The organization is that of the project's namespace: the one that the claim names could be
 * somebody else's, whose record is public.
 */
export function challengeOf({ spec: { hostname, projectRef } }: DomainClaim): Challenge {
  const organizationId = organizationOfNamespace(projectRef.namespace) ?? "";
  return {
    organizationId,
    name: challengeName(hostname),
    value: challengeValue(organizationId, hostname),
  };
}

/** A challenge's value, whosever it is. */
const ANY_VALUE = /^slipway-verification=[0-9a-f]{32}$/;

/**
 * What an answer proves about a challenge; other records do no harm.
 * @param others the organizations that may prove it in the claim's place; called only where the answer contains another value
 */
export function evaluateAnswer(
  answer: TxtAnswer,
  { value }: Pick<Challenge, "value">,
  { hostname, others }: { hostname: string; others: () => readonly string[] },
): Proof {
  if ("failed" in answer) {
    return "failed";
  }
  const records = answer.records.map((record) => record.trim());
  if (records.includes(value)) {
    return "proved";
  }
  const values = new Set(records.filter((record) => ANY_VALUE.test(record)));
  if (
    values.size > 0 &&
    others().some((organization) => values.has(challengeValue(organization, hostname)))
  ) {
    return "another";
  }
  return records.length > 0 ? "wrong" : "missing";
}
