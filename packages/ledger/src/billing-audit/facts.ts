/** Compares recorded charges of a project with those that its history has: pure, docs/billing-audit.md. */

import {
  billingCycle,
  equalDecimal,
  type PlanCharge,
  parseDecimal,
  planAdjustments,
  type RecordedPlanCharge,
} from "@slipway/crds";
import type { BillingFinding } from "./findings.ts";

/** A row of `plan_charges`. */
export interface AuditedCharge extends RecordedPlanCharge {
  /** First day of the cycle that it belongs to. */
  readonly cycle: string;
  /** In milliseconds; of what adjusts a fact when that was recorded. */
  readonly lateAt?: number | undefined;
}

export interface ComparedFacts {
  projectUid: string;
  /** What the history costs, by key. */
  wanted: ReadonlyMap<string, PlanCharge>;
  /** What it cost before late changes, where that was something else. By key. */
  earlier: ReadonlyMap<string, readonly PlanCharge[]>;
  /** Whether there may have been more: what is recorded is compared by sums alone. */
  isPartial: boolean;
  recorded: readonly AuditedCharge[];
  /** How often the project was adjusted to late changes. */
  passes: number;
  /** A late change waits: sums of facts are not yet those of the whole history. */
  isPending: boolean;
}

type Found = Omit<BillingFinding, "organizationId">;

/** What differs, a finding for each charge or fact. */
export function compareFacts(compared: ComparedFacts): Found[] {
  const { wanted, recorded, isPending } = compared;
  const own = new Map(
    recorded.flatMap((row) => (row.adjusts === undefined ? [[row.key, row] as const] : [])),
  );
  const found = recorded.flatMap((row) => compareRow(row, { ...compared, own }));
  const adjusted = new Set(recorded.flatMap(({ adjusts }) => adjusts ?? []));
  if (isPending) {
    return found;
  }
  const isKnownWrong = new Set(found.map(({ key }) => key));
  for (const [key, charge] of wanted) {
    if (!own.has(key) && !adjusted.has(key)) {
      found.push({ code: "CHARGE_MISSING", key, expected: describeCharge(charge) });
      isKnownWrong.add(key);
    }
  }
  // What would be adjusted now: of a fact whose rows do not come to what it costs.
  for (const { adjusts, kind, amount } of planAdjustments([...wanted.values()], recorded, compared.passes)) {
    if (!isKnownWrong.has(adjusts)) {
      const sign = kind === "credit" ? "less" : "more";
      found.push({
        code: "CHARGE_NET_DIFFERS",
        key: adjusts,
        expected: `${amount} ${sign} than is recorded`,
      });
    }
  }
  return found;
}

function compareRow(
  row: AuditedCharge,
  {
    projectUid,
    wanted,
    earlier,
    isPartial,
    own,
    passes,
  }: ComparedFacts & { own: ReadonlyMap<string, AuditedCharge> },
): Found[] {
  const fact = row.adjusts ?? row.key;
  const current = wanted.get(fact);
  const versions = [...(current ? [current] : []), ...(earlier.get(fact) ?? [])];
  const at = row.lateAt ?? row.from;
  const cycle = isTime(at) ? dayOf(billingCycle(new Date(at)).startedAt) : "none";
  const differs = (expected: PlanCharge | undefined, what = ""): Found[] => [
    {
      code: expected === undefined ? "CHARGE_UNEXPECTED" : "CHARGE_DIFFERS",
      key: row.key,
      ...(expected === undefined ? {} : { expected: `${what}${describeCharge(expected)}, cycle ${cycle}` }),
      found: `${describeCharge(row)}, cycle ${row.cycle}`,
    },
  ];
  if (row.adjusts === undefined) {
    const isAsOnce = isPartial || versions.some((version) => isSameCharge(version, row));
    return isAsOnce && row.cycle === cycle && row.lateAt === undefined ? [] : differs(versions[0]);
  }
  const ownRow = own.get(fact);
  const facts = ownRow ? [...versions, ownRow] : versions;
  const isOfFact = isPartial || facts.some((version) => isSameFact({ ...version, kind: row.kind }, row));
  const isWellFormed =
    row.lateAt !== undefined && row.cycle === cycle && isAdjustmentKey(row, fact, { projectUid, passes });
  return isOfFact && isWellFormed ? [] : differs(facts[0], "an adjustment of ");
}

/** `UID/KIND/late/PASS/FACT`, with a kind that the fact's difference may have. */
function isAdjustmentKey(
  { key, kind }: AuditedCharge,
  fact: string,
  { projectUid, passes }: { projectUid: string; passes: number },
): boolean {
  const [uid, ...rest] = fact.split("/");
  const [factKind] = rest;
  const pass = Number(key.split("/")[3]);
  const charging = factKind === "credit" ? "term" : factKind;
  return (
    uid === projectUid &&
    (kind === "credit" || kind === charging) &&
    pass < passes &&
    key === [uid, kind, "late", pass, ...rest].join("/")
  );
}

const isSameFact = (a: PlanCharge, b: PlanCharge): boolean =>
  a.kind === b.kind &&
  a.from === b.from &&
  a.to === b.to &&
  a.finalAt === b.finalAt &&
  a.plan === b.plan &&
  a.instance === b.instance &&
  a.gb === b.gb &&
  equalDecimal(parseDecimal(a.price), parseDecimal(b.price));

/** Whether nothing differs between a charge and another one of the same key. */
export const isSameCharge = (a: PlanCharge, b: PlanCharge): boolean =>
  isSameFact(a, b) && equalDecimal(parseDecimal(a.amount), parseDecimal(b.amount));

/** Whether it is an instant of the calendar: PostgreSQL also has infinite ones. */
const isTime = (at: number): boolean => Math.abs(at) < 8e15;

/** An instant as text. */
export const timeOf = (at: number): string => (isTime(at) ? new Date(at).toISOString() : String(at));

const dayOf = (at: Date): string => at.toISOString().slice(0, 10);

/** A charge in one line, with all that is compared. */
export function describeCharge({
  kind,
  from,
  to,
  finalAt,
  plan,
  instance,
  gb,
  price,
  amount,
}: PlanCharge): string {
  const parts = [
    `${kind} ${timeOf(from)}/${timeOf(to)}`,
    ...(finalAt === to ? [] : [`final ${timeOf(finalAt)}`]),
    ...(plan === undefined ? [] : [`plan ${plan}`]),
    ...(instance === undefined ? [] : [`instance ${instance}`]),
    ...(gb === undefined ? [] : [`${gb} GB`]),
    `price ${price}`,
    `amount ${amount}`,
  ];
  return parts.join(", ");
}
