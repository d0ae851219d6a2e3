/** When unpaid invoices are notified of, and when they block their organization. Pure. */

/** Where they do. */
export interface OverdueTerms {
  /** Days before an invoice is due, and before it blocks, of which each is notified of. */
  noticeDays: readonly number[];
  /** Days after which one that is overdue blocks its organization. */
  blockDays: number;
}

/** An invoice that is not paid, and what its organization was notified of. */
export interface UnpaidInvoice {
  organizationId: string;
  number: string;
  currency: string;
  openCents: bigint;
  dueAt: Date;
  /** How many of its payments were taken back: from each on, what was notified of counts no more. */
  reversals: number;
  /** Notices that are recorded, by their names. */
  notices: ReadonlyMap<string, RecordedNotice>;
  /** An administrator has unblocked its organization: it blocks no more. */
  isWaived: boolean;
  /** Whether its organization is blocked for an overdue invoice. */
  isBlocked: boolean;
}

export interface RecordedNotice {
  recordedAt: Date;
  /** When it says that the invoice blocks. */
  blocksAt: Date;
}

/** What is to be recorded of an invoice next. */
export interface OverdueStep {
  step: "due" | "overdue" | "block";
  /** Names a notice among those of its invoice; empty for a block. */
  notice: string;
  blocksAt: Date;
}

const DAY_MS = 86_400_000;
/** Nothing is blocked sooner after the notice that says when, whatever is set or turned on meanwhile. */
const SHORTEST_NOTICE_MS = DAY_MS;

/** The days of the longest notice. */
export const longestNotice = ({ noticeDays }: OverdueTerms): number => Math.max(0, ...noticeDays);

/** What is to be recorded of an invoice; undefined where nothing is. Of notices that came late the last one alone is. */
export function overdueStep(
  { dueAt, notices, reversals, isWaived, isBlocked }: UnpaidInvoice,
  terms: OverdueTerms,
  now: Date,
): OverdueStep | undefined {
  const unlessRecorded = (step: "due" | "overdue", name: string, blocksAt: Date): OverdueStep | undefined => {
    const notice = `${name}/${reversals}`;
    return notices.has(notice) ? undefined : { step, notice, blocksAt };
  };
  // More days than was notified of count, fewer do not, in whichever notice they were.
  const announced = [...notices]
    .filter(([name]) => name.endsWith(`/${reversals}`))
    .map(([, one]) => one.blocksAt);
  const blocksAt = announced.reduce(latest, new Date(dueAt.getTime() + terms.blockDays * DAY_MS));
  if (now <= dueAt) {
    const days = reachedNotice(terms, dueAt, now);
    return days === undefined ? undefined : unlessRecorded("due", `due/${days}`, blocksAt);
  }
  const first = notices.get(`overdue/${reversals}`);
  if (first === undefined) {
    return unlessRecorded(
      "overdue",
      "overdue",
      latest(blocksAt, new Date(now.getTime() + SHORTEST_NOTICE_MS)),
    );
  }
  if (isWaived || isBlocked) {
    return undefined;
  }
  if (now >= blocksAt) {
    return { step: "block", notice: "", blocksAt };
  }
  const days = reachedNotice(terms, blocksAt, now);
  const isSaid = days === undefined || blocksAt.getTime() - days * DAY_MS <= first.recordedAt.getTime();
  return isSaid ? undefined : unlessRecorded("overdue", `block/${days}`, blocksAt);
}

const latest = (one: Date, other: Date): Date => (one > other ? one : other);

/** The shortest notice before a moment whose time has come. */
function reachedNotice({ noticeDays }: OverdueTerms, moment: Date, now: Date): number | undefined {
  const left = moment.getTime() - now.getTime();
  return noticeDays.filter((days) => left <= days * DAY_MS).toSorted((a, b) => a - b)[0];
}
