/**
 * The platform's PostgreSQL database: functions over a Kysely pool, one file for each subject. `connect.ts` opens the pool,
 * `schema.ts` has the tables as types, and `migrations/` has the history of the schema. Whatever charges money or counts a
 * quota is one transaction here.
 */

export type { AlertEnd, AlertKey, AlertState, RecordedAlert } from "./alert-events.ts";
export * from "./alert-states.ts";
export * from "./api-keys.ts";
export * from "./audit.ts";
export * from "./billable-changes.ts";
export { auditBilling, type BillingAudit, type BillingAuditOptions } from "./billing-audit/audit.ts";
export {
  type BillingFinding,
  type BillingFindingCode,
  BillingFindings,
  billingFindingCodes,
} from "./billing-audit/findings.ts";
export { AUDIT_APPLICATION, AuditRunningError, AuditTimeoutError } from "./billing-audit/lock.ts";
export { type AuditedObject, auditObjects } from "./billing-audit/objects.ts";
export { type BillingSeal, lastSeal, type SealedUntil, sealBilling } from "./billing-seals.ts";
export * from "./budget-crossings.ts";
export * from "./budgets.ts";
export * from "./build-logs.ts";
export * from "./build-triggers.ts";
export * from "./builds.ts";
export {
  type ConnectOptions,
  connectLedger,
  countSynchronousStandbys,
  type Ledger,
  ledgerTime,
} from "./connect.ts";
export * from "./costs.ts";
export { type CreditNote, issueCreditNote, listCreditNotes, type ToCredit } from "./credit-notes.ts";
export * from "./deployments.ts";
export * from "./domain-reservations.ts";
export * from "./email-recipients.ts";
export * from "./git-delivery-queue.ts";
export * from "./idempotency.ts";
export {
  beginInvoicing,
  completeInvoiceCycle,
  cyclesToInvoice,
  nextInvoicesDue,
  organizationsToInvoice,
} from "./invoice-cycles.ts";
export { type InvoiceTerms, issueInvoice } from "./invoice-issue.ts";
export {
  type InvoiceOutcome,
  type InvoicePayment,
  listInvoicePayments,
  openCents,
  payInvoice,
  reversePayment,
  type ToPay,
} from "./invoice-payments.ts";
export {
  findInvoice,
  type Invoice,
  type InvoiceCharge,
  type InvoiceLine,
  type InvoiceRef,
  type InvoiceState,
  listInvoiceCharges,
  listInvoiceLines,
  listInvoices,
} from "./invoices.ts";
export * from "./job-run-list.ts";
export * from "./job-run-logs.ts";
export {
  type JobRunKey,
  type JobRunMetricsJson,
  type JobRunRow,
  scheduledMinute,
  type TerminalJobRunStatus,
} from "./job-run-rows.ts";
export { findJobRun, type RecordedJobRun, recordJobRuns } from "./job-runs.ts";
export { type MeteredHistory, meteredHistories } from "./metered-histories.ts";
export * from "./metric-samples.ts";
export { migrateToLatest } from "./migrations/index.ts";
export {
  CONFIRMATION_EVENT,
  EMAIL_TEST_EVENT,
  eventIdOf,
  type NotificationEvent,
  TEST_EVENT,
} from "./notification-event.ts";
export { setOrganizationCountry } from "./organization-countries.ts";
export * from "./organizations.ts";
export {
  type BlockedOrganization,
  listBlocks,
  listOverdueOrganizations,
  listUnpaidOrganizations,
  type RecordedOverdue,
  recordOverdue,
} from "./overdue.ts";
export type { OverdueTerms } from "./overdue-rule.ts";
export { ensurePartitions } from "./partitions.ts";
export {
  countRefusedPaymentEvents,
  type ListedPaymentEvent,
  listPaymentEvents,
} from "./payment-event-list.ts";
export { type RecordedPaymentEvent, recordPaymentEvent } from "./payment-events.ts";
export type { DecidedOutcome, PaymentEvent, PaymentOutcome } from "./payment-rule.ts";
export { type AdjustedProject, recordedPlanCharges, recordPlanAdjustments } from "./plan-adjustments.ts";
export {
  type LateChanges,
  listPrices,
  type MeteredProject,
  type MeteredWindow,
  projectsToMeter,
  type RecordedPlanCharges,
  recordPlanCharges,
  recordPrices,
} from "./plan-charges.ts";
export * from "./quota-request.ts";
export * from "./quota-reservations.ts";
export {
  isDeadlock,
  isLockTimeout,
  isRefusedRow,
  isStatementError,
  isTooSlow,
  recordInParts,
} from "./refused-rows.ts";
export { type ChargedResources, chargeBuilds } from "./resource-charges.ts";
export { type Retired, retireAuditLog, retireJobRuns, retireUnmatchedPayments } from "./retention.ts";
export type {
  Build,
  BuildStatus,
  Deployment,
  DeploymentStatus,
  IdempotencyRecord,
  LedgerSchema,
  Organization,
  QuotaReservationRow,
  RetiredImage,
  Role,
  UsageKind,
  Webhook,
  WebhookDelivery,
  WebhookDeliveryStatus,
  WebhookDisabledReason,
} from "./schema.ts";
export * from "./settlements.ts";
export * from "./storage-charges.ts";
export * from "./usage.ts";
export * from "./webhook-deliveries.ts";
export { type BegunDelivery, EVENT_LIMITS, recordEvent, recordEventFor } from "./webhook-events.ts";
export * from "./webhook-queue.ts";
export * from "./webhook-retirement.ts";
export * from "./webhooks.ts";
