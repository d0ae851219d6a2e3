import { describe, expect, test } from "vitest";
import { Bench } from "../../../../test/kit/operator/jobrun-bench.ts";

/** From the end of a run to its charge: by the ledger and the samples. */

async function begun(): Promise<Bench> {
  const bench = new Bench();
  await bench.reconcileUntilStable();
  await bench.passTo("12:01:00");
  return bench;
}

describe("a run", () => {
  test("that ended while nobody led keeps what was measured of it before", async () => {
    const bench = await begun();
    const measured = { status: "collecting", samples: 3, averageCores: "0.5" } as const;
    bench.deps.samples.read = () => measured;
    bench.deps.samples.finish = (_key, { before }) => before ?? { status: "unavailable", samples: 0 };
    const { name, pod } = await bench.start("12:01:00");
    await bench.pass(5_000);
    bench.ends(pod, 0, "12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status?.metrics).toEqual(measured);
  });

  test("whose charge the ledger refuses reports it, keeps everything, and is charged once the ledger accepts it", async () => {
    const bench = await begun();
    const { name, pod } = await bench.start("12:01:00");
    bench.ledger.refuses = "job_runs_minutes";
    await bench.pass(5_000);
    bench.ends(pod, 0, "12:01:00");
    await bench.reconcileUntilStable();
    await bench.pass(1_000);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Charged")).toBe("False/ChargeRefused");
    const charged = bench.run(name)?.status?.conditions?.find(({ type }) => type === "Charged");
    expect(charged?.message).toContain("job_runs_minutes");
    expect(bench.state.activeRun).toBeUndefined();
    expect(bench.run(name)?.metadata.finalizers).toEqual(["slipway.dev/jobrun"]);
    const written = bench.writes.length;
    await bench.pass(180_000);
    await bench.once();
    expect(bench.writes.slice(written).filter((write) => write === "patch jobruns")).toEqual([]);
    bench.ledger.refuses = undefined;
    await bench.pass(61_000);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Charged")).toBe("True/ChargeRecorded");
    expect(bench.job(name)).toBeUndefined();
  });
});
