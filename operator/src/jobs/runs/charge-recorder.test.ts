import { silentLogger } from "@slipway/process";
import { describe, expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { ChargeRecorder } from "./charge-recorder.ts";
import type { ChargedRun, RecordedRun } from "./ports.ts";

const row = (id: string): ChargedRun => ({ id, organization_id: "o" }) as ChargedRun;

function charging(record: (rows: ChargedRun[]) => Promise<RecordedRun[]>, options = {}) {
  const clock = new FakeClock();
  const woken: string[] = [];
  const chargeRecorder = new ChargeRecorder({
    ledger: { record },
    clock,
    random: () => 1,
    log: silentLogger,
    ...options,
  });
  chargeRecorder.onRecorded((key) => woken.push(key));
  return { clock, chargeRecorder, woken };
}

const recorded = (outcome: RecordedRun["outcome"]) => (rows: ChargedRun[]) =>
  Promise.resolve(
    rows.map(({ id, organization_id }) => ({ id, organization_id, outcome, reason: "the rule" })),
  );

describe("charges", () => {
  test("are gathered for a moment and recorded together", async () => {
    const batches: number[] = [];
    const { clock, chargeRecorder, woken } = charging((rows) => {
      batches.push(rows.length);
      return recorded("recorded")(rows);
    });
    for (let index = 0; index < 3; index += 1) {
      expect(chargeRecorder.record(`n/p${index}`, `u${index}`, row(`r${index}`))).toBeUndefined();
    }
    await clock.advance(49);
    expect(batches).toEqual([]);
    await clock.advance(1);
    expect(batches).toEqual([3]);
    expect(woken).toEqual(["n/p0", "n/p1", "n/p2"]);
    expect(chargeRecorder.record("n/p0", "u0", row("r0"))).toEqual({ outcome: "recorded", at: clock.now() });
  });

  test("are recorded at most so many at a time", async () => {
    const batches: number[] = [];
    const { clock, chargeRecorder } = charging(
      (rows) => {
        batches.push(rows.length);
        return recorded("recorded")(rows);
      },
      { maxBatch: 2 },
    );
    for (let index = 0; index < 5; index += 1) {
      chargeRecorder.record("n/p", `u${index}`, row(`r${index}`));
    }
    await clock.advance(1_000);
    expect(batches).toEqual([2, 2, 1]);
  });

  test("are sent again while the ledger is unavailable, without limit", async () => {
    let down = true;
    let sent = 0;
    const { clock, chargeRecorder } = charging((rows) => {
      sent += 1;
      return down ? Promise.reject(new Error("unavailable")) : recorded("already")(rows);
    });
    chargeRecorder.record("n/p", "u", row("r"));
    await clock.advance(300_000);
    expect(chargeRecorder.record("n/p", "u", row("r"))).toBeUndefined();
    expect(sent).toBeGreaterThan(50);
    expect(sent).toBeLessThan(120);
    down = false;
    await clock.advance(5_001);
    expect(chargeRecorder.record("n/p", "u", row("r"))).toMatchObject({ outcome: "already" });
  });

  test("that the ledger refuses are not recorded, and sent again a minute later", async () => {
    let outcome: RecordedRun["outcome"] = "refused";
    let sent = 0;
    const { clock, chargeRecorder, woken } = charging((rows) => {
      sent += 1;
      return recorded(outcome)(rows);
    });
    chargeRecorder.record("n/p", "u", row("r"));
    expect(chargeRecorder.refusal("u")).toBeUndefined();
    await clock.advance(59_000);
    expect([sent, chargeRecorder.record("n/p", "u", row("r"))]).toEqual([1, undefined]);
    expect([chargeRecorder.refusal("u"), woken]).toEqual(["the rule", ["n/p"]]);
    outcome = "recorded";
    await clock.advance(2_000);
    expect(chargeRecorder.record("n/p", "u", row("r"))).toMatchObject({ outcome: "recorded" });
    expect(chargeRecorder.refusal("u")).toBeUndefined();
  });

  test.each(["refuses", "is unavailable"])(
    "are sent no more once it is stopped, while the ledger %s",
    async (how) => {
      let sent = 0;
      const { clock, chargeRecorder } = charging((rows) => {
        sent += 1;
        return how === "refuses" ? recorded("refused")(rows) : Promise.reject(new Error("unavailable"));
      });
      chargeRecorder.record("n/p", "u", row("r"));
      await clock.advance(1_000);
      chargeRecorder.stop();
      const before = sent;
      chargeRecorder.record("n/p", "u2", row("r2"));
      await clock.advance(300_000);
      expect(before).toBeGreaterThan(0);
      expect(sent).toBe(before);
      expect(clock.pending).toBe(0);
    },
  );

  test("are kept in bounded memory: a caller that is rejected calls again", async () => {
    const { clock, chargeRecorder } = charging(recorded("recorded"), { maxKept: 1 });
    chargeRecorder.record("n/p", "u1", row("r1"));
    expect(chargeRecorder.record("n/q", "u2", row("r2"))).toBe("full");
    await clock.advance(100);
    chargeRecorder.forget("u1");
    expect(chargeRecorder.record("n/q", "u2", row("r2"))).toBeUndefined();
    await clock.advance(100);
    expect(chargeRecorder.record("n/q", "u2", row("r2"))).toMatchObject({ outcome: "recorded" });
  });
});
