import { ConditionSet } from "@slipway/controller-runtime";
import type { HttpPlan, Project, ProjectConditionCatalog } from "@slipway/crds";
import type { QuotaDecision } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { describe, expect, test } from "vitest";
import { unlimitedQuotas } from "../../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import { WaitingError } from "../../reconcile-errors.ts";
import type { QuotaLedger } from "./quota-ledger.ts";
import { QuotaReservations } from "./reservations.ts";
import { reserveQuota, setLimitExceeded } from "./steps.ts";

const plan = {
  plan: "free",
  limit: { scope: "free", counts: "instances", max: 2, code: "REACHED" },
} as unknown as HttpPlan;
const project = (spec: Partial<Project["spec"]> = {}, status?: Project["status"]): Project => ({
  ...exampleProject({ namespace: "slipway-org-alpha", name: "p1" }, spec),
  metadata: { namespace: "slipway-org-alpha", name: "p1", generation: 3 },
  status,
});
const quotasOf = (change: Partial<QuotaLedger>) =>
  new QuotaReservations({ ...unlimitedQuotas(), ...change }, silentLogger, () => 0);
const answering = (answer: QuotaDecision) => quotasOf({ reserve: async () => answer });
const away = () =>
  quotasOf({
    list: async () => [],
    reserve: () => Promise.reject(new Error("connection refused")),
  });
const outcome = (quotas: QuotaReservations, of = project()) =>
  reserveQuota(of, plan, quotas).then(
    () => "reserved",
    (error: unknown) => {
      expect(error).toBeInstanceOf(WaitingError);
      const { reason, condition, requeueAfterMs } = error as WaitingError;
      return `${condition} ${reason} ${requeueAfterMs}`;
    },
  );

describe("a project", () => {
  test("without quota waits, and tries again every 30 seconds", async () => {
    expect(await outcome(answering({ reserved: false, reason: "limit", used: 2, max: 2 }))).toBe(
      "Accepted FreeLimitReached 30000",
    );
    expect(await outcome(answering({ reserved: false, reason: "capacity", limit: 7 }))).toBe(
      "Accepted PlanCapacityReached 30000",
    );
  });

  test("has the same message as long as nothing changes for it", async () => {
    const messageFor = (used: number) =>
      reserveQuota(project(), plan, answering({ reserved: false, reason: "limit", used, max: 2 })).catch(
        (error: Error) => error.message,
      );
    expect(await messageFor(1)).toBe(await messageFor(2));
  });

  test("that is new waits while the ledger is unavailable", async () => {
    expect(await outcome(away())).toBe("Accepted LedgerUnavailable 5000");
  });

  test.each([
    ["continues while the ledger is unavailable when this generation was accepted", 3, "reserved"],
    ["waits when another spec was", 2, "Accepted LedgerUnavailable 5000"],
  ])("%s", async (_, observedGeneration, expected) => {
    const accepted = {
      type: "Accepted",
      status: "True" as const,
      reason: "Accepted",
      message: "",
      lastTransitionTime: "2026-01-01T00:00:00Z",
      observedGeneration,
    };
    expect(await outcome(away(), project({}, { conditions: [accepted] }))).toBe(expected);
  });

  test("that is paused needs no quota, and releases the one it has", async () => {
    const ledger = unlimitedQuotas();
    const quotas = new QuotaReservations(ledger, silentLogger, () => 0);
    await reserveQuota(project(), plan, quotas);
    expect(await ledger.list()).toHaveLength(1);
    await reserveQuota(project({ paused: true }), plan, quotas);
    expect(await ledger.list()).toEqual([]);
  });
});

describe("LimitExceeded", () => {
  const conditions = () => new ConditionSet<ProjectConditionCatalog>([], { now: new Date(), generation: 1 });
  test.each(["FreeLimitReached", "PlanCapacityReached"])("is set for %s", (reason) => {
    const set = conditions();
    setLimitExceeded(set, { reason, message: "no quota" });
    expect(set.get("LimitExceeded")).toMatchObject({ status: "True", reason, message: "no quota" });
  });

  test.each(["", "UnknownPlan", "LedgerUnavailable"])("is removed for %j", (reason) => {
    const set = conditions();
    setLimitExceeded(set, { reason: "FreeLimitReached", message: "no quota" });
    setLimitExceeded(set, { reason, message: "" });
    expect(set.get("LimitExceeded")).toBeUndefined();
  });
});
