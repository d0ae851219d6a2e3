import type { OperationExamples } from "./example.ts";
import { EXAMPLE_ID, EXAMPLE_RUN_ID } from "./id.ts";

const ok = (data: unknown, members: Record<string, unknown> = {}): OperationExamples => ({
  responses: { 200: { status: "success", ...members, data } },
});

const cycle = { cycle_started_at: "2026-11-01T00:00:00.000Z", next_reset_at: "2026-12-01T00:00:00.000Z" };
const summary = { id: EXAMPLE_RUN_ID, status: "succeeded", billed_minutes: 2, currency: "brl" };
const window = { started_at: "2026-11-21T03:00:02.000Z", finished_at: "2026-11-21T03:01:12.000Z" };

export const jobRunExamples = {
  listJobRuns: ok({
    runs: [
      {
        id: EXAMPLE_RUN_ID,
        status: "succeeded",
        trigger: "schedule",
        scheduled_at: "2026-11-21T03:00:00.000Z",
        ...window,
        duration_seconds: 70,
        billed_minutes: 2,
        plan: "job-premium",
        amount: 0.1,
        currency: "brl",
      },
    ],
    pagination: { page: 1, limit: 15, total: 1, total_pages: 1 },
    ...cycle,
  }),
  readJobCostSummary: ok({
    totals: [{ currency: "brl", total_amount: 0.1, executed_runs: 1, billed_minutes: 2, billed_runs: 1 }],
    ...cycle,
  }),
  startJobRun: {
    responses: {
      202: {
        status: "success",
        message: "the run starts",
        data: {
          run: { id: `${EXAMPLE_ID}-29920983-k3x9q0v2m7`, scheduled_at: "2026-11-21T11:03:27.412Z" },
        },
      },
    },
  },
  cancelJobRun: ok({ run: { ...summary, status: "cancelled" } }, { message: "run cancelled" }),
  readJobRunLogs: ok({ run: summary, logs: "3 reports sent\n" }),
  readJobRunMetrics: ok({
    run_id: EXAMPLE_RUN_ID,
    status: "available",
    window,
    cpu: { average_cores: 0.12, peak_cores: 0.48 },
    memory: { average_bytes: 31_457_280, peak_bytes: 41_943_040 },
    samples: 14,
  }),
} as const satisfies Record<string, OperationExamples>;
