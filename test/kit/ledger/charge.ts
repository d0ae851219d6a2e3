import type { Ledger } from "@slipway/ledger";
import { sql } from "kysely";

/** Charges an organization an amount of BRL cents at a moment, which may lie ahead: now unless given. Triggers add it to the sums. */
export async function insertCharge(
  ledger: Ledger,
  { organizationId, amount, at = new Date() }: { organizationId: string; amount: string; at?: Date },
): Promise<void> {
  const endsAt = new Date(at.getTime() + 3_600_000);
  await sql`
    insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan,
      instance, price, amount)
    values (${organizationId}, 'shop', 'u-shop', 'u-shop/instance_hour/' || gen_random_uuid(), 'instance_hour', ${at}, ${endsAt},
      least(now(), ${endsAt}), billing_cycle(${at}), 'basic', 0, ${amount}::numeric, ${amount}::numeric)`.execute(
    ledger,
  );
}
