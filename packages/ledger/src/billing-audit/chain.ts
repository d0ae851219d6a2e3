import { sql } from "kysely";
import { sealHash } from "../billing-seals.ts";
import type { Ledger } from "../connect.ts";
import type { BillingFinding } from "./findings.ts";

/** Audits the chain of seals itself: docs/billing-audit.md#seals. */

/** Seals of one statement, which reads all of their leaves: of thousands of organizations. */
const SEALS = 48;

interface Seal {
  number: string;
  sealed_to: string;
  hash: string;
  is_next: boolean;
  is_same: boolean;
}

type Report = (finding: BillingFinding) => void;

type Link = Pick<Seal, "number" | "sealed_to" | "hash">;

/** What the first seal follows. */
const BEGIN: Link = { number: "0", sealed_to: "-infinity", hash: "00".repeat(32) };

/**
 * Each seal follows the one before, and has the hash of its leaves. The session's time zone is UTC.
 * @param from a date, of which the first seal is audited as what follows the one before, whose hash is taken as it is; all of them unless given
 * @returns the number of the first one that is audited
 */
export async function auditChain(
  ledger: Ledger,
  { from }: { from?: string | undefined },
  report: Report,
): Promise<number> {
  let last = (from === undefined ? undefined : await lastBefore(ledger, from)) ?? BEGIN;
  const first = Number(last.number) + 1;
  for (;;) {
    const { rows } = await sql<Seal>`
      select number, sealed_to::text, encode(hash, 'hex') as hash, number = number_before + 1 as is_next,
        sealed_from = to_before and previous = hash_before and hash = ${sealHash(sql`s`)}
          and rows = (select coalesce(sum(rows), 0) from billing_seal_leaves l where l.number = s.number) as is_same
      from (select *, lag(number, 1, ${last.number}::bigint) over w as number_before,
          lag(sealed_to, 1, ${last.sealed_to}::timestamptz) over w as to_before,
          lag(hash, 1, decode(${last.hash}, 'hex')) over w as hash_before
        from (select * from billing_seals where number > ${last.number} order by number limit ${SEALS}) page
        window w as (order by number)) s
      order by number`.execute(ledger);
    for (const seal of rows) {
      if (!(seal.is_next && seal.is_same)) {
        report({
          code: "SEAL_DIFFERS",
          key: seal.number,
          expected: "what follows from the seal before, and its leaves",
          found: seal.hash,
        });
      }
      if (!seal.is_next) {
        await auditLost(ledger, [last.number, seal.number], report);
      }
      last = seal;
    }
    if (rows.length < SEALS) {
      await auditLost(ledger, [last.number, undefined], report);
      return first;
    }
  }
}

/** The last seal all of whose rows were recorded before a date. */
async function lastBefore(ledger: Ledger, from: string): Promise<Link | undefined> {
  const { rows } = await sql<Link>`
    select number, sealed_to::text, encode(hash, 'hex') as hash from billing_seals
    where sealed_to <= ${from}::timestamp at time zone 'UTC' order by number desc limit 1`.execute(ledger);
  return rows[0];
}

/** Leaves of seals that are missing between two, or after the last one. */
async function auditLost(
  ledger: Ledger,
  [after, before]: [string, string | undefined],
  report: Report,
): Promise<void> {
  const { rows } = await sql<{ number: string; leaves: string }>`
    select number, count(*) as leaves from billing_seal_leaves
    where number > ${after} and (${before ?? null}::bigint is null or number < ${before ?? null}::bigint)
    group by number order by number limit 1000`.execute(ledger);
  for (const { number, leaves } of rows) {
    report({ code: "SEAL_DIFFERS", key: number, expected: "a seal", found: `${leaves} leaves of none` });
  }
}
