/** The time since which an organization has reserved a hostname without a proof. */

import { type DomainClaim, organizationOfNamespace } from "@slipway/crds";
import type { Logger } from "@slipway/process";

/** The record of reservations after their claims are deleted. */
export interface ReservationLedger {
  /** Records a claim; when the organization first claimed the hostname. */
  firstClaimOf(claim: { organizationId: string; hostname: string; claimedAt: Date }): Promise<Date>;
  /** Forgets a reservation that has ended with a proof. */
  forget(claim: { organizationId: string; hostname: string }): Promise<void>;
}

export class Reservations {
  readonly #ledger: ReservationLedger;
  readonly #log: Logger;
  /** By hostname; a later claim of the same hostname is another. */
  readonly #known = new Map<string, { uid: string; since: Date }>();

  constructor(ledger: ReservationLedger, log: Logger) {
    this.#ledger = ledger;
    this.#log = log;
  }

  /** The organization's first claim of the hostname. While the ledger is unavailable, this claim alone counts. */
  async since(claim: DomainClaim): Promise<Date> {
    const { uid = "", creationTimestamp = "" } = claim.metadata;
    const { hostname } = claim.spec;
    const known = this.#known.get(hostname);
    if (known?.uid === uid) {
      return known.since;
    }
    const claimedAt = new Date(creationTimestamp);
    try {
      const since = await this.#ledger.firstClaimOf({ ...identityOf(claim), claimedAt });
      this.#known.set(hostname, { uid, since });
      return since;
    } catch (error) {
      this.#log.warn({ err: error, hostname }, "reservation not recorded");
      return claimedAt;
    }
  }

  /** Ends a reservation whose domain is proved. */
  async end(claim: DomainClaim): Promise<void> {
    this.#known.delete(claim.spec.hostname);
    try {
      await this.#ledger.forget(identityOf(claim));
    } catch (error) {
      // It is retired when nobody has claimed the hostname for long.
      this.#log.warn({ err: error, hostname: claim.spec.hostname }, "reservation not ended");
    }
  }

  /** Forgets a deleted claim; the ledger does not. */
  drop(hostname: string): void {
    this.#known.delete(hostname);
  }
}

const identityOf = ({ spec: { hostname, projectRef } }: DomainClaim) => ({
  organizationId: organizationOfNamespace(projectRef.namespace) ?? "",
  hostname,
});
