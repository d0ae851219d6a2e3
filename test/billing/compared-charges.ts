import { billableHistories, type Ledger, listPrices } from "@slipway/ledger";
import { sql } from "kysely";
import { cents, recompute, recomputeBuilds } from "./recomputation.ts";

/** What is recorded of an organization's plans and builds, beside what its histories cost by the second program. */
export interface ComparedCharges {
  /** Facts that were compared. */
  facts: number;
  /** Of each fact that is charged otherwise, or not at all: its key, and both amounts in 10^-18 cents. */
  differing: string[];
  /** What all facts cost by the second program, credits subtracted, in 10^-18 cents. */
  total: bigint;
}

const HOUR = 3_600_000;

/** End of the hour in which a project's last change lies: what it had then is charged of its own, whatever follows. In milliseconds. */
export function endOfHour(changes: readonly { at: number }[]): number {
  const [begin = 0, last = 0] = [changes[0]?.at, changes.at(-1)?.at];
  return begin + (Math.floor((last - begin) / HOUR) + 1) * HOUR;
}

interface Meter {
  project_uid: string;
  metered_until: Date | null;
}

/**
 * Compares as of one moment: all that is final before an instant, and up to when each project is charged where that is later. Of a project with
 * nothing to charge the ledger notes no such time.
 * @param finalBefore in milliseconds
 */
export function compareCharges(
  ledger: Ledger,
  organizationId: string,
  finalBefore: number,
): Promise<ComparedCharges> {
  return ledger
    .transaction()
    .setIsolationLevel("repeatable read")
    .execute(async (transaction: Ledger) => {
      const wanted = new Map([
        ...(await plansOf(transaction, organizationId, finalBefore)),
        ...(await buildsOf(transaction, organizationId)),
      ]);
      const recorded = await recordedOf(transaction, organizationId);
      const keys = [...new Set([...wanted.keys(), ...recorded.keys()])].sort();
      const differing = keys.filter((key) => wanted.get(key) !== recorded.get(key));
      return {
        facts: keys.length,
        differing: differing.map((key) => `${key}: ${wanted.get(key)}, but ${recorded.get(key)}`),
        total: [...wanted.values()].reduce((sum, amount) => sum + amount, 0n),
      };
    });
}

/** What plans cost by the second program, by key; credits are negative. */
async function plansOf(
  ledger: Ledger,
  organizationId: string,
  finalBefore: number,
): Promise<Map<string, bigint>> {
  const prices = await listPrices(ledger);
  const { rows } = await sql<Meter>`
    select project_uid, metered_until from plan_meters where organization_id = ${organizationId}`.execute(
    ledger,
  );
  const histories = await billableHistories(
    ledger,
    rows.map(({ project_uid }) => project_uid),
  );
  const meters = new Map(rows.map((row) => [row.project_uid, row.metered_until?.getTime() ?? 0]));
  return new Map(
    histories.flatMap(({ projectUid, changes, deletedAt }) => {
      const until = Math.max(meters.get(projectUid) ?? 0, finalBefore);
      const origin = changes[0]?.at ?? 0;
      const history = { changes, ...(deletedAt === undefined ? {} : { deletedAt }) };
      const costs = recompute(history, prices, { knownUntil: until, hoursFrom: origin });
      return [...costs].flatMap(([fact, amount]): [string, bigint][] => {
        const [kind = "", number] = fact.split("/");
        const over = Math.min(origin + (Number(number) + 1) * HOUR, deletedAt ?? Number.POSITIVE_INFINITY);
        const isFinal = !kind.endsWith("_hour") || over < until;
        return isFinal ? [[`${projectUid}/${fact}`, kind === "credit" ? -amount : amount]] : [];
      });
    }),
  );
}

async function buildsOf(ledger: Ledger, organizationId: string): Promise<Map<string, bigint>> {
  const { rows } = await sql<{
    project_uid: string;
    id: string;
    ran_from: Date;
    ran_until: Date;
    error_code: string | null;
  }>`select project_uid, id, ran_from, ran_until, error_code from builds
    where organization_id = ${organizationId} and ran_from is not null and ran_until is not null`.execute(
    ledger,
  );
  return recomputeBuilds(
    rows.map((row) => ({
      id: `${row.project_uid}/build_minute/${row.id}`,
      began: row.ran_from.getTime(),
      ended: row.ran_until.getTime(),
      code: row.error_code ?? undefined,
    })),
    await listPrices(ledger),
  );
}

/** What is recorded of each fact in all; those of which nothing is left are left out. */
async function recordedOf(ledger: Ledger, organizationId: string): Promise<Map<string, bigint>> {
  const { rows } = await sql<{ key: string; charged: string; credited: string }>`
    select coalesce(adjusts, key) as key,
      trim_scale(coalesce(sum(amount) filter (where kind <> 'credit'), 0))::text as charged,
      trim_scale(coalesce(sum(amount) filter (where kind = 'credit'), 0))::text as credited
    from plan_charges where organization_id = ${organizationId} group by 1`.execute(ledger);
  const nets = rows.map(({ key, charged, credited }): [string, bigint] => [
    key,
    cents(charged) - cents(credited),
  ]);
  return new Map(nets.filter(([, amount]) => amount !== 0n));
}
