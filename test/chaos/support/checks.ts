/**
 * Invariants of runs, whatever fault the operator has had: a pure comparison of what the cluster's pods report, what the
 * ledger has, and what the project's status has of its schedule.
 */

/** A pod as it was last observed, deleted ones included. */
export interface PodRecord {
  uid: string;
  name: string;
  project: string;
  /** Name of its Job. */
  run: string;
  startedAt?: Date;
  finishedAt?: Date;
  /** Other ends that the pod has reported before: there must be none. */
  otherEnds?: readonly Date[];
  exitCode?: number;
  finalizers: readonly string[];
  deleted: boolean;
}

/** A JobRun as it was last observed, deleted ones included. */
export interface JobRunRecord {
  name: string;
  project: string;
  trigger: "schedule" | "manual";
  scheduledAt: Date;
  admittedAt?: Date;
  cancelRequestedAt?: Date;
  lastObservedRunningAt?: Date;
  chargedAt?: Date;
  /** Refused for good. */
  refused: boolean;
  deleted: boolean;
}

/** A Job that exists. */
export interface JobRecord {
  name: string;
  project: string;
  finalizers: readonly string[];
}

export interface ProjectRecord {
  id: string;
  /** The first that was observed of its current schedule. */
  scheduledSince?: Date;
  lastScheduledAt?: Date;
  missed: number;
  missedReasons: Readonly<Record<string, number>>;
  activeRun?: string;
}

/** A run in the ledger. */
export interface LedgerRun {
  id: string;
  project: string;
  trigger: string;
  scheduledAt: Date;
  startedAt: Date;
  finishedAt: Date;
  billedUntil: Date;
  status: string;
  billedMinutes: number;
  /** Decimal text, BRL cents. */
  pricePerMinute: string;
  amount: string;
}

/** A charge in the ledger, of the run that it names. */
export interface LedgerCharge {
  run: string;
  project: string;
  amount: string;
}

export interface Records {
  pods: readonly PodRecord[];
  jobRuns: readonly JobRunRecord[];
  jobs: readonly JobRecord[];
  projects: readonly ProjectRecord[];
  runs: readonly LedgerRun[];
  charges: readonly LedgerCharge[];
}

export interface Expectations {
  /** Runs whose pods were removed by force, so that their end could not be observed. */
  vanished?: ReadonlySet<string>;
  /**
   * Those of them whose Jobs made another pod before the operator could know of it: the Job's controller is as fast, and nothing
   * can delay it. The second pod is stopped and costs nothing.
   */
  replaced?: ReadonlySet<string>;
  /** Seconds after which a run is ended; 3,600. */
  limitSeconds?: number;
  /** BRL cents a minute, in ten-thousandths. */
  price?: bigint;
}

export interface Violation {
  rule: string;
  /** Run or project. */
  subject: string;
  detail: string;
}

const MINUTE = 60_000;
/** Exit code of a container that was stopped by SIGTERM. */
const STOPPED = 143;
const WINDOW_MS = 120_000;

/** Every way in which the records contradict what is promised; minutely schedules are assumed. Empty without a violation. */
export function violations(records: Records, expectations: Expectations = {}): Violation[] {
  const pods = Map.groupBy(records.pods, ({ run }) => run);
  const runs = Map.groupBy(records.runs, ({ id }) => id);
  const charges = Map.groupBy(records.charges, ({ run }) => run);
  const jobRuns = new Map(records.jobRuns.map((jobRun) => [jobRun.name, jobRun]));
  const subjects = new Set([...pods.keys(), ...runs.keys(), ...charges.keys(), ...jobRuns.keys()]);
  const found: Violation[] = [];
  for (const subject of subjects) {
    const report = (rule: string, detail: string) => found.push({ rule, subject, detail });
    const itsPods = pods.get(subject) ?? [];
    const itsRuns = runs.get(subject) ?? [];
    const itsCharges = charges.get(subject) ?? [];
    const jobRun = jobRuns.get(subject);
    const [, second, ...more] = itsPods;
    const stopped = second?.startedAt === undefined || second.exitCode === STOPPED;
    if (second && (!expectations.replaced?.has(subject) || more.length > 0 || !stopped)) {
      report("one pod per run", itsPods.map(({ name, exitCode }) => `${name} ended ${exitCode}`).join(", "));
    }
    for (const { name, otherEnds = [] } of itsPods) {
      if (otherEnds.length > 0) {
        report("a pod ends once", `${name} has reported ${otherEnds.map(iso)} before`);
      }
    }
    if (itsPods.length > 0 && !jobRun) {
      report("no container unrecorded", "a pod without a JobRun");
    }
    if (itsRuns.length > 1) {
      report("one ledger entry per run", `${itsRuns.length} entries`);
    }
    if (itsCharges.length !== itsRuns.length) {
      report("one charge per ledger entry", `${itsRuns.length} entries, ${itsCharges.length} charges`);
    }
    const started = itsPods.find(({ startedAt }) => startedAt);
    const [run] = itsRuns;
    if (started && !run) {
      report("no run lost", `its container started at ${iso(started.startedAt)}`);
    }
    if (run && !started) {
      report("nothing invented", "the ledger has a run whose container never started");
    }
    if (jobRun?.refused && itsPods.length > 0) {
      report("refused runs do not start", started?.name ?? "");
    }
    if (jobRun) {
      checkAdmission(jobRun, report);
    }
    if (!run || !started) {
      continue;
    }
    for (const charge of itsCharges) {
      if (!sameMoney(charge.amount, run.amount)) {
        report("charge is the run's amount", `${charge.amount}, not ${run.amount}`);
      }
    }
    checkBilling(run, started, jobRun, expectations, report);
  }
  for (const project of records.projects) {
    found.push(...checkProject(project, records, expectations));
  }
  return found;
}

/** What keeps the records from being final: active runs, outstanding charges, finalizers that are still set. */
export function unfinished(records: Records): Violation[] {
  const found: Violation[] = [];
  const report = (rule: string, subject: string, detail: string) => found.push({ rule, subject, detail });
  for (const pod of records.pods) {
    if (!pod.deleted && pod.finalizers.length > 0) {
      report("no finalizer stuck", pod.run, `pod ${pod.name} has ${pod.finalizers.join(", ")}`);
    }
  }
  for (const job of records.jobs) {
    if (job.finalizers.length > 0) {
      report("no finalizer stuck", job.name, `its Job has ${job.finalizers.join(", ")}`);
    }
  }
  for (const jobRun of records.jobRuns) {
    if (!jobRun.deleted && !jobRun.chargedAt && !jobRun.refused) {
      report("every run is charged", jobRun.name, "its JobRun exists and is not charged");
    }
  }
  for (const project of records.projects) {
    if (project.activeRun) {
      report("slots are released", project.id, `${project.activeRun} is its active run`);
    }
  }
  return found;
}

type Report = (rule: string, detail: string) => void;

function checkAdmission(jobRun: JobRunRecord, report: Report): void {
  if (jobRun.trigger !== "schedule" || !jobRun.admittedAt) {
    return;
  }
  const late = jobRun.admittedAt.getTime() - jobRun.scheduledAt.getTime();
  if (late < 0) {
    report("never early", `admitted ${-late} ms before its minute`);
  }
  if (late >= Math.min(WINDOW_MS, MINUTE)) {
    report("never late", `admitted ${late} ms after its minute`);
  }
}

function checkBilling(
  run: LedgerRun,
  pod: PodRecord,
  jobRun: JobRunRecord | undefined,
  { vanished, limitSeconds = 3_600, price = 200n }: Expectations,
  report: Report,
): void {
  const equal = (what: string, given: Date, wanted: Date | undefined) => {
    if (given.getTime() !== wanted?.getTime()) {
      report("times are the container's own", `${what} ${iso(given)}, not ${iso(wanted)}`);
    }
  };
  equal("started", run.startedAt, pod.startedAt);
  const cancelled = jobRun?.cancelRequestedAt;
  if (vanished?.has(run.id)) {
    // Its end was not observed: it is billed up to when it was last observed running.
    equal("finished", run.finishedAt, jobRun?.lastObservedRunningAt);
    if (!["failed", "cancelled"].includes(run.status)) {
      report("status is the outcome", run.status);
    }
  } else {
    // A runtime records the start of a container that ends immediately after its end, and so sometimes a second later.
    const endOf = (reported: Date) =>
      new Date(run.startedAt.getTime() + Math.max(0, reported.getTime() - (pod.startedAt?.getTime() ?? 0)));
    const end = pod.finishedAt && endOf(pod.finishedAt);
    equal("finished", run.finishedAt, end);
    const ran = ((end?.getTime() ?? 0) - run.startedAt.getTime()) / 1_000;
    const plain = pod.exitCode === 0 ? "succeeded" : "failed";
    const wanted = ran >= limitSeconds ? ["deadline_exceeded"] : cancelled ? ["cancelled", plain] : [plain];
    if (!wanted.includes(run.status)) {
      report("status is the outcome", `${run.status}, with exit code ${pod.exitCode} after ${ran} s`);
    }
  }
  if (run.status === "cancelled" && cancelled && !vanished?.has(run.id)) {
    equal(
      "billed until",
      run.billedUntil,
      new Date(clamp(cancelled.getTime(), run.startedAt.getTime(), run.finishedAt.getTime())),
    );
  } else {
    equal("billed until", run.billedUntil, run.finishedAt);
  }
  const minutes = clamp(Math.ceil((run.billedUntil.getTime() - run.startedAt.getTime()) / MINUTE), 1, 60);
  if (run.billedMinutes !== minutes) {
    report("billed minutes are right", `${run.billedMinutes}, not ${minutes}`);
  }
  if (tenThousandths(run.amount) !== price * BigInt(minutes)) {
    report("amount is exact", `${run.amount} for ${minutes} minutes`);
  }
}

function checkProject(project: ProjectRecord, records: Records, { replaced }: Expectations): Violation[] {
  const found: Violation[] = [];
  const report = (rule: string, detail: string) => found.push({ rule, subject: project.id, detail });
  const pods = records.pods
    .filter((pod) => pod.project === project.id && pod.startedAt)
    .sort((a, b) => Number(a.startedAt) - Number(b.startedAt));
  const scheduled = new Map(records.jobRuns.map((jobRun) => [jobRun.name, jobRun]));
  for (const [index, pod] of pods.entries()) {
    const before = pods[index - 1];
    if (!before || (before.run === pod.run && replaced?.has(pod.run))) {
      continue;
    }
    const end = before.finishedAt?.getTime() ?? Number.POSITIVE_INFINITY;
    if (Number(pod.startedAt) < end) {
      report("never two concurrently", `${before.run} and ${pod.run}`);
    }
    const jobRun = scheduled.get(pod.run);
    // Container times are whole seconds: one that ended in the second of the minute was active at it.
    if (jobRun?.trigger === "schedule" && jobRun.scheduledAt.getTime() <= end) {
      report("no catch-up", `${pod.run} was due while ${before.run} ran, until ${iso(before.finishedAt)}`);
    }
  }
  const { scheduledSince, lastScheduledAt } = project;
  const ran = records.runs.filter((run) => run.project === project.id && run.trigger === "schedule");
  if (scheduledSince) {
    const due = lastScheduledAt
      ? Math.floor(lastScheduledAt.getTime() / MINUTE) - Math.floor(scheduledSince.getTime() / MINUTE)
      : 0;
    if (ran.length + project.missed !== due) {
      report(
        "every occurrence ran or was missed",
        `${due} were due, ${ran.length} ran, ${project.missed} were missed`,
      );
    }
  } else if (ran.length > 0) {
    report("every occurrence ran or was missed", "it has runs and no schedule");
  }
  const byReason = Object.values(project.missedReasons).reduce((sum, count) => sum + count, 0);
  if (byReason !== project.missed) {
    report("missed ones have their reasons", `${project.missed} missed, ${byReason} by reason`);
  }
  return found;
}

const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);
const iso = (date: Date | undefined) => date?.toISOString() ?? "unknown";

/** A decimal in ten-thousandths; digits beyond make it differ from every price of four digits. */
function tenThousandths(decimal: string): bigint | undefined {
  const [, whole, fraction = ""] = /^([0-9]+)(?:\.([0-9]*))?$/.exec(decimal) ?? [];
  if (whole === undefined || /[1-9]/.test(fraction.slice(4))) {
    return undefined;
  }
  return BigInt(whole) * 10_000n + BigInt(fraction.slice(0, 4).padEnd(4, "0"));
}

const sameMoney = (a: string, b: string) => tenThousandths(a) === tenThousandths(b);
