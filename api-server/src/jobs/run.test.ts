import { runAmount } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { runResource, runRow } from "../../../test/kit/api-server/job-runs.ts";
import { runMetrics } from "./metrics.ts";
import { jsonDecimal, runItem, runOfResource, runOfRow, runSummary } from "./run.ts";

const names = { organizationId: "acme", projectId: "pjob", id: "pjob-29406240" };
const scheduledAt = new Date(29_406_240 * 60_000);
const started = "2025-11-29T00:00:02Z";
const finished = "2025-11-29T00:01:12Z";
const printed = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown;

const whole = {
  id: names.id,
  status: "succeeded",
  trigger: "schedule",
  scheduled_at: "2025-11-29T00:00:00.000Z",
  started_at: "2025-11-29T00:00:02.000Z",
  finished_at: "2025-11-29T00:01:12.000Z",
  duration_seconds: 70,
  billed_minutes: 2,
  plan: "job-premium",
  amount: 0.1,
  currency: "brl",
};

const terminal = {
  phase: "succeeded" as const,
  plan: "job-premium",
  pricePerMinute: "0.05",
  startedAt: started,
  finishedAt: finished,
  billedUntil: finished,
  billedMinutes: 2,
  amount: "0.10",
  exitCode: 0,
  endReason: "Completed",
};

describe("a run", () => {
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: a run has `id`, `status`, `scheduled_at`
  it("has every field of the table, and neither exit code nor end reason", () => {
    const row = runOfRow(runRow(names, scheduledAt));
    const resource = runOfResource(runResource(names, scheduledAt, terminal));
    expect(printed(runItem(row))).toEqual(whole);
    expect(resource && printed(runItem(resource))).toEqual(whole);
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: an active run has no end and no amount; one that
  it("that is running has neither an end nor an amount", () => {
    const status = { ...terminal, phase: "running" as const };
    const run = runOfResource(runResource(names, scheduledAt, status));
    const { finished_at: _f, duration_seconds: _d, billed_minutes: _b, amount: _a, ...rest } = whole;
    expect(run && printed(runItem(run))).toEqual({ ...rest, status: "running" });
    expect(run && runSummary(run)).toEqual({ id: names.id, status: "running", currency: "brl" });
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: an active run has no end and no amount; one that
  it("whose container has not started is none", () => {
    expect(runOfResource(runResource(names, scheduledAt))).toBeUndefined();
    expect(runOfResource(runResource(names, scheduledAt, { plan: "job-basic" }))).toBeUndefined();
    expect(runOfResource(runResource(names, scheduledAt, { phase: "cancelled" }))).toBeUndefined();
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: `duration_seconds` are whole seconds between
  it("counts whole seconds between start and finish", () => {
    const run = { ...runOfRow(runRow(names, scheduledAt)), finishedAt: new Date("2025-11-29T00:00:03.999Z") };
    expect(runItem(run)).toMatchObject({ duration_seconds: 1 });
  });
});

describe("the metrics of a run", () => {
  const metrics = {
    samples: 7,
    sampledAt: "2025-11-29T00:00:52Z",
    averageCores: "0.25",
    peakCores: "0.5",
    latestCores: "0.1",
    averageBytes: "1048576.5",
    peakBytes: "2097152",
    latestBytes: "1572864",
  };
  const of = (status: Parameters<typeof runResource>[2]) => {
    const resource = runResource(names, scheduledAt, status);
    const run = runOfResource(resource);
    if (!run) {
      throw new Error("no run");
    }
    return printed(runMetrics({ run, resource }));
  };

  // Shows: docs/jobs.md#endpoints: `GET /v1/project/:id/job-runs/:runId/metrics` | `data`: `run_id`
  it("are collecting while it runs, with the latest values", () => {
    const status = { phase: "running" as const, startedAt: started };
    expect(of({ ...status, metrics: { status: "collecting", ...metrics } })).toEqual({
      run_id: names.id,
      status: "collecting",
      window: { started_at: whole.started_at },
      cpu: { average_cores: 0.25, peak_cores: 0.5, latest_cores: 0.1 },
      memory: { average_bytes: 1_048_576, peak_bytes: 2_097_152, latest_bytes: 1_572_864 },
      samples: 7,
      sampled_at: "2025-11-29T00:00:52.000Z",
    });
    // Before the first sample nothing is known, and nothing is zero.
    expect(of(status)).toEqual({
      run_id: names.id,
      status: "collecting",
      window: { started_at: whole.started_at },
    });
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: metrics: `collecting`, then `available` or
  it("are collecting until the last word is written with the charge", () => {
    expect(of(terminal)).toMatchObject({ status: "collecting" });
    expect(of({ ...terminal, metrics: { status: "collecting", samples: 3 } })).toMatchObject({ samples: 3 });
    expect(of({ ...terminal, chargedAt: finished })).toMatchObject({ status: "unavailable" });
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: metrics: `collecting`, then `available` or
  it("are available after its end, without the latest values; from the ledger too", () => {
    const available = {
      run_id: names.id,
      status: "available",
      window: { started_at: whole.started_at, finished_at: whole.finished_at },
      cpu: { average_cores: 0.25, peak_cores: 0.5 },
      memory: { average_bytes: 1_048_576, peak_bytes: 2_097_152 },
      samples: 7,
    };
    expect(of({ ...terminal, metrics: { status: "available", ...metrics } })).toEqual(available);
    const row = runRow(names, scheduledAt, { metrics: { status: "available", ...metrics } });
    expect(printed(runMetrics({ run: runOfRow(row), row }))).toEqual(available);
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: metrics: `collecting`, then `available` or
  it("are unavailable when nothing was measured: absent, never zero", () => {
    const row = runRow(names, scheduledAt);
    const unavailable = {
      run_id: names.id,
      status: "unavailable",
      window: { started_at: whole.started_at, finished_at: whole.finished_at },
    };
    expect(printed(runMetrics({ run: runOfRow(row), row }))).toEqual(unavailable);
    expect(of({ ...terminal, metrics: { status: "unavailable" } })).toEqual(unavailable);
  });
});

const printedDecimal = (text: string) => JSON.stringify({ amount: jsonDecimal(text) });

describe("jsonDecimal", () => {
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: amounts are exact, and their JSON is the decimal
  it("prints an amount as it is, and never as a float would", () => {
    expect(0.1 * 3).not.toBe(0.3);
    expect(printedDecimal(runAmount("0.1", 3))).toBe('{"amount":0.3}');
    expect(printedDecimal("0.30")).toBe('{"amount":0.3}');
    expect(printedDecimal("1.000")).toBe('{"amount":1}');
    expect(printedDecimal("0")).toBe('{"amount":0}');
    expect(printedDecimal("0.0000001")).toBe('{"amount":0.0000001}');
  });

  it("keeps digits that a float would lose", () => {
    expect(printedDecimal("12345678901234567890.123456789")).toBe(
      '{"amount":12345678901234567890.123456789}',
    );
  });

  it("prints nothing but a plain decimal", () => {
    for (const text of ["", "1e3", "NaN", "-1", "1,5", '"1"']) {
      expect(() => jsonDecimal(text)).toThrow(RangeError);
    }
  });
});
