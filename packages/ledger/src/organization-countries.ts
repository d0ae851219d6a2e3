import { sql } from "kysely";
import type { Ledger } from "./connect.ts";

/**
 * Sets the country (ISO 3166-1, two capital letters) by which an organization's next invoices are taxed.
 * @throws when there is no such organization
 */
export async function setOrganizationCountry(
  ledger: Ledger,
  organizationId: string,
  country: string,
): Promise<void> {
  await sql`
    insert into organization_countries (organization_id, country) values (${organizationId}, ${country})
    on conflict (organization_id) do update set country = excluded.country, set_at = now()`.execute(ledger);
}
