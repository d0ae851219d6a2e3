import { type BillableState, type PriceList, planAdjustments, planCharges } from "@slipway/crds";
import {
  type BuildRow,
  beginInvoicing,
  billableHistories,
  chargeBuilds,
  completeInvoiceCycle,
  insertOrganization,
  issueCreditNote,
  issueInvoice,
  type Ledger,
  listInvoices,
  organizationsToInvoice,
  payInvoice,
  projectsToMeter,
  recordBillableChanges,
  recordBuild,
  recordedPlanCharges,
  recordJobRuns,
  recordPlanAdjustments,
  recordPlanCharges,
  recordStorageCharges,
  reversePayment,
  setOrganizationCountry,
  settleCycle,
} from "@slipway/ledger";
import { sql } from "kysely";
import { jobRun, storageHour } from "./charged-rows.ts";
import { forge } from "./forge.ts";

/** January and February 2026 of three organizations, with every kind of row that money follows from. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const at = (text: string): number => Date.parse(`2026-${text}Z`);
/** Up to when all is charged. */
const END = at("03-01T00:00:00");

const prices = (basic: number, gbHour: string, buildMinute: string, from: number): PriceList => ({
  from,
  gbHour,
  resources: { buildMinute },
  plans: {
    basic: { hourly: `${basic}`, monthly: `${basic * 720}`, yearly: `${basic * 8640}`, refund: "none" },
    premium: { hourly: "8.35", monthly: "5760", yearly: "69120", refund: "prorated" },
    free: { hourly: "0", monthly: "0", yearly: "0", refund: "none" },
  },
});
const lists = [prices(3, "0.1", "0.05", Date.UTC(2025, 0)), prices(4, "0.2", "0.07", at("02-10T12:00:00"))];

type Change = Partial<BillableState> & { at: number; deleted?: boolean };
const STATE: BillableState = {
  plan: "basic",
  paymentMode: "hourly",
  renews: true,
  instances: 1,
  paused: false,
  billedGb: 0,
};

interface Project {
  organizationId: string;
  projectId: string;
  changes: readonly Change[];
  /** Changes that come after all charges: each is followed by an adjustment. */
  late?: readonly Change[];
}

const projects: readonly Project[] = [
  {
    organizationId: "acme",
    projectId: "shop",
    changes: [
      { at: at("01-28T10:30:00"), billedGb: 10 },
      { at: at("01-29T02:10:00"), instances: 3, billedGb: 10 },
      { at: at("01-30T00:00:00"), instances: 2, paused: true, billedGb: 20 },
      { at: at("02-01T07:00:00"), instances: 2, plan: "premium", billedGb: 20 },
      { at: at("02-02T09:15:00"), deleted: true },
    ],
  },
  {
    organizationId: "acme",
    projectId: "api",
    changes: [
      { at: at("01-20T10:00:00"), paymentMode: "monthly", instances: 2 },
      { at: at("02-22T00:00:00"), paymentMode: "monthly", plan: "premium", instances: 2 },
      { at: at("02-25T12:00:00"), deleted: true },
    ],
  },
  {
    organizationId: "acme",
    projectId: "late",
    changes: [{ at: at("01-31T20:00:00") }, { at: at("02-02T20:00:00"), paused: true }],
    late: [
      { at: at("02-28T03:00:00"), paused: true, billedGb: 5 },
      { at: at("02-28T09:30:00"), deleted: true },
    ],
  },
  {
    organizationId: "beta",
    projectId: "site",
    changes: [
      { at: at("02-09T22:00:00.500"), billedGb: 1 },
      { at: at("02-11T01:00:00"), deleted: true },
    ],
  },
  {
    organizationId: "beta",
    projectId: "blog",
    changes: [{ at: at("02-01T00:00:00"), paymentMode: "yearly" }],
  },
];

/** By which projects are charged: `u-` and the project's id. */
const uidOf = ({ projectId }: Pick<Project, "projectId">) => `u-${projectId}`;

/** Fills an empty ledger, of which an audit then finds nothing. */
export async function recordBilledMonths(ledger: Ledger): Promise<void> {
  for (const id of ["acme", "beta", "gamma"]) {
    await insertOrganization(ledger, { id, name: id });
  }
  await recordPastPrices(ledger);
  await recordRuns(ledger);
  for (const project of projects) {
    await meterProject(ledger, project);
  }
  await recordBuilds(ledger);
  await asRecordedInTime(ledger);
  await setOrganizationCountry(ledger, "acme", "BR");
  await beginInvoicing(ledger, new Date(at("01-01T00:00:00")));
  await invoiceMonth(ledger, "2026-01-01");
  await recordLateRuns(ledger);
  await invoiceMonth(ledger, "2026-02-01");
  await payAndCredit(ledger);
  for (const project of projects) {
    await meterLateChanges(ledger, project);
  }
}

async function recordPastPrices(ledger: Ledger): Promise<void> {
  await ledger.transaction().execute((transaction) =>
    forge(
      transaction,
      ...lists.map(
        ({
          from,
          plans,
          gbHour,
          resources,
        }) => `insert into price_lists (from_at, plans, gb_hour, resources, recorded_at)
          values (to_timestamp(${from / 1_000}), '${JSON.stringify(plans)}', '${gbHour}', '${JSON.stringify(resources)}', to_timestamp(${from / 1_000}))`,
      ),
    ),
  );
}

async function recordRuns(ledger: Ledger): Promise<void> {
  const days = Array.from({ length: 40 }, (_, day) => at("01-15T03:00:00") + day * DAY);
  await recordJobRuns(
    ledger,
    days.flatMap((day) =>
      ["acme", "gamma"].map((organization_id) =>
        jobRun({
          organization_id,
          scheduled_at: new Date(day),
          seconds: (day / DAY) % 300,
          price_per_minute: "0.35",
        }),
      ),
    ),
  );
  await recordStorageCharges(
    ledger,
    Array.from({ length: 48 }, (_, hour) =>
      storageHour({ organization_id: "gamma", from: new Date(at("01-31T00:00:00") + hour * HOUR) }),
    ),
  );
}

/** Builds of apps with their own history, with a late change, and of a job, which has none. */
const builds: readonly (Pick<BuildRow, "organization_id" | "project_id"> & {
  at: number;
} & Partial<BuildRow>)[] = [
  { organization_id: "acme", project_id: "shop", at: at("01-28T10:20:00.250") },
  { organization_id: "acme", project_id: "late", at: at("02-01T03:00:00"), status: "superseded" },
  { organization_id: "gamma", project_id: "nightly", at: at("01-31T23:59:30") },
  { organization_id: "beta", project_id: "site", at: at("02-10T11:59:59.999") },
  { organization_id: "beta", project_id: "site", at: at("02-10T12:00:00") },
  {
    organization_id: "acme",
    project_id: "shop",
    at: at("02-01T08:00:00"),
    error_code: "BUILD_ENGINE_FAILED",
  },
  { organization_id: "acme", project_id: "shop", at: at("02-01T09:00:00"), ran_from: null, ran_until: null },
];

async function recordBuilds(ledger: Ledger): Promise<void> {
  for (const [index, { at: begun, ...build }] of builds.entries()) {
    await recordBuild(ledger, {
      project_uid: `u-${build.project_id}`,
      id: `b${index + 1}`,
      triggered_by: "manual",
      branch: null,
      tag: null,
      commit_sha: null,
      commit_message: null,
      status: "failed",
      digest: null,
      error_code: null,
      error_message: null,
      created_at: new Date(begun - 1_000),
      started_at: new Date(begun),
      ran_from: new Date(begun),
      ran_until: new Date(begun + 150_000 * (index + 1)),
      // Of what ended long ago the audit expects no charge.
      finished_at: new Date(Date.now() - 3_600_000),
      ...build,
    });
  }
  // What was noted just now is not charged yet.
  await sql`update ended_builds set noted_at = noted_at - interval '1 hour'`.execute(ledger);
  await chargeBuilds(ledger);
}

/** Runs that are charged once their month is settled: with the next one. */
const recordLateRuns = (ledger: Ledger) =>
  recordJobRuns(
    ledger,
    ["01-16T04:00:00", "01-26T04:00:00"].map((time) =>
      jobRun({ organization_id: "gamma", scheduled_at: new Date(at(time)), price_per_minute: "0.35" }),
    ),
  );

async function meterProject(ledger: Ledger, project: Project): Promise<void> {
  await recordBillableChanges(ledger, changesOf(project, project.changes, 1));
  const uid = uidOf(project);
  const [history] = await billableHistories(ledger, [uid]);
  if (history === undefined) {
    throw new Error(`no history of ${uid}`);
  }
  let since: number | undefined;
  for (
    let until = at("01-08T00:00:00");
    until <= END;
    until += until + 7 * DAY > END && until < END ? END - until : 7 * DAY
  ) {
    const charges = planCharges(history, lists, { since, until }).filter(({ finalAt }) => finalAt < until);
    const ended = (history.deletedAt ?? END) < until;
    const window = { until: new Date(until), ended, arrivals: project.changes.length, charges };
    await recordPlanCharges(ledger, [{ ...project, projectUid: uid, ...window }]);
    since = until;
  }
}

async function meterLateChanges(ledger: Ledger, project: Project): Promise<void> {
  const uid = uidOf(project);
  for (const [index, change] of (project.late ?? []).entries()) {
    await recordBillableChanges(ledger, changesOf(project, [change], project.changes.length + 1 + index));
    const [history] = await billableHistories(ledger, [uid]);
    const meter = (await projectsToMeter(ledger)).find(({ projectUid }) => projectUid === uid);
    if (history === undefined || meter?.late === undefined || meter.until === undefined) {
      throw new Error(`no late change of ${uid}`);
    }
    const { late, until } = meter;
    const end = until.getTime();
    const wanted = planCharges(history, lists, { hoursSince: late.from.getTime(), until: end });
    const recorded = await recordedPlanCharges(ledger, uid, late.from);
    const final = wanted.filter(({ finalAt }) => finalAt < end);
    const charges = planAdjustments(final, recorded, late.pass);
    await recordPlanAdjustments(ledger, {
      ...meter,
      until,
      late,
      ended: history.deletedAt !== undefined,
      charges,
    });
  }
}

const changesOf = (project: Project, changes: readonly Change[], first: number) =>
  changes.map(({ at: time, deleted = false, ...state }, index) => ({
    organizationId: project.organizationId,
    projectId: project.projectId,
    projectUid: uidOf(project),
    number: first + index,
    at: new Date(time),
    state: deleted ? undefined : { ...STATE, ...state },
  }));

/** Rows have the time of the test: here they get one that the platform would have recorded them at. */
async function asRecordedInTime(ledger: Ledger): Promise<void> {
  await ledger
    .transaction()
    .execute((transaction) =>
      forge(
        transaction,
        "update billable_changes set recorded_at = at + interval '3 seconds'",
        "update plan_charges set recorded_at = final_at + interval '10 minutes'",
        "update charges set recorded_at = due_at + interval '5 minutes'",
      ),
    );
}

async function invoiceMonth(ledger: Ledger, cycle: string): Promise<void> {
  const taxes = {
    default: [{ name: "VAT", rate: "20" }],
    countries: {
      BR: [
        { name: "ISS", rate: "2.9" },
        { name: "PIS", rate: "0.65" },
      ],
    },
  };
  await settleCycle(ledger, new Date(cycle));
  for (const organizationId of await organizationsToInvoice(ledger, cycle)) {
    await issueInvoice(ledger, { organizationId, cycle }, { issuer: "Example", dueDays: 14, taxes });
  }
  await completeInvoiceCycle(ledger, cycle);
}

async function payAndCredit(ledger: Ledger): Promise<void> {
  const { invoices } = await listInvoices(ledger, { organizationId: "acme", limit: 10, offset: 0 });
  for (const { number } of invoices) {
    await payInvoice(ledger, { number, reference: "bank-1", amountCents: 100n });
    await payInvoice(ledger, { number, reference: "bank-2", amountCents: 50n });
    await reversePayment(ledger, { number, reference: "bank-2" });
    for (const reference of ["ticket-1", "ticket-2"]) {
      await issueCreditNote(ledger, { number, reference, reason: "An outage", netCents: 77n });
    }
  }
}
