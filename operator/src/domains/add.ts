/** Constructs what proves domains, and adds the controller of their claims. */

import type { BackoffOptions, Manager } from "@slipway/controller-runtime";
import { contendersOf, organizationOfNamespace } from "@slipway/crds";
import { BY_WANTED_HOST, type ProjectStores } from "../projects/stores.ts";
import { addDomainClaimController } from "./controller.ts";
import { OwnershipChecks } from "./ownership-checks.ts";
import { type ReservationLedger, Reservations } from "./reservations.ts";
import { createTxtLookup } from "./txt-lookup.ts";

interface DomainOptions extends Pick<ProjectStores, "projects" | "claims"> {
  domainZone: string;
  /** Name servers that prove the ownership of domains; none for the system's. */
  dnsServers: string[];
  ownershipRetry?: BackoffOptions;
  proofRetry?: BackoffOptions;
  reservations?: ReservationLedger;
}

/** Adds everything about the ownership of domains to a manager. */
export function addDomains(manager: Manager, options: DomainOptions): void {
  const { projects, claims, domainZone, ownershipRetry, proofRetry = PROOF_RETRY } = options;
  const checkOptions = {
    lookup: createTxtLookup({ servers: options.dnsServers }),
    clock: manager.clock,
    random: manager.random,
    contenders: (hostname: string) => contendersFor(hostname, { projects, claims }),
  };
  addDomainClaimController(manager, {
    claims,
    projects,
    domainZone,
    ownership: new OwnershipChecks({ ...checkOptions, retry: ownershipRetry }),
    proofs: new OwnershipChecks({ ...checkOptions, retry: proofRetry, repeats: true }),
    reservations: new Reservations(options.reservations ?? NO_RESERVATIONS, manager.log),
  });
}

/** Between two look-ups of a domain that is proved: a day. */
const PROOF_RETRY: BackoffOptions = { baseMs: 86_400_000, maxMs: 86_400_000 };

/** Remembers nothing: each claim counts alone. */
const NO_RESERVATIONS: ReservationLedger = {
  firstClaimOf: async ({ claimedAt }) => claimedAt,
  forget: async () => {},
};

/** Organizations that want a hostname, by a project's spec or since they were refused it over `/v1`. */
function contendersFor(
  hostname: string,
  { projects, claims }: Pick<ProjectStores, "projects" | "claims">,
): string[] {
  const wanting = projects.byIndex(BY_WANTED_HOST, hostname);
  const claim = claims.get(undefined, hostname);
  return [
    ...wanting.flatMap(({ metadata }) => organizationOfNamespace(metadata.namespace ?? "") ?? []),
    ...(claim ? contendersOf(claim) : []),
  ];
}
