/** Whether what the DNS says proves the ownership of a hostname. Pure. */

import { challengeName, challengeValue, type DomainClaim, organizationOfNamespace } from "@slipway/crds";

/** What a TXT look-up came to; a failed one says nothing about the records. */
export type TxtAnswer = { records: readonly string[] } | { failed: true };

/** What an answer proves. */
export type Proof = "proved" | "missing" | "wrong" | "failed";

/** Where to look, and what must stand there. */
export interface Challenge {
  name: string;
  value: string;
}

/**
 * The challenge of a claim. It is the organization of the project's namespace that has to be named: what the claim itself
 * says of it could be somebody else's, whose record is public.
 */
export function challengeOf({ spec: { hostname, projectRef } }: DomainClaim): Challenge {
  const organization = organizationOfNamespace(projectRef.namespace) ?? "";
  return { name: challengeName(hostname), value: challengeValue(organization, hostname) };
}

/** Holds an answer against what must stand there; other records beside it do no harm. */
export function judge(answer: TxtAnswer, { value }: Pick<Challenge, "value">): Proof {
  if ("failed" in answer) {
    return "failed";
  }
  const records = answer.records.map((record) => record.trim());
  if (records.includes(value)) {
    return "proved";
  }
  return records.length > 0 ? "wrong" : "missing";
}
