import { describe, expect, it } from "vitest";
import { Gate } from "./gate.ts";

const busy = { status: 503, code: "SERVER_BUSY", headers: { "retry-after": "2" } };

describe("Gate", () => {
  it("lets the next in when one leaves, in order", async () => {
    const gate = new Gate({ atOnce: 1, waiting: 9, waitMs: 1_000 });
    const leave = await gate.enter();
    const seen: number[] = [];
    const others = [1, 2, 3].map((index) => gate.run(() => void seen.push(index)));
    expect([seen, gate.inside]).toEqual([[], 1]);
    leave();
    await Promise.all(others);
    expect([seen, gate.inside]).toEqual([[1, 2, 3], 0]);
  });

  it("refuses whose turn does not come in time, and forgets it", async () => {
    const gate = new Gate({ atOnce: 1, waiting: 1, waitMs: 20 });
    const leave = await gate.enter();
    await expect(gate.enter()).rejects.toMatchObject(busy);
    leave();
    expect(gate.inside).toBe(0);
    await expect(gate.run(() => "in")).resolves.toBe("in");
  });

  it("refuses at once when too many wait", async () => {
    const gate = new Gate({ atOnce: 1, waiting: 1, waitMs: 60_000 });
    const leave = await gate.enter();
    const waiting = gate.run(() => "in");
    await expect(gate.enter()).rejects.toMatchObject(busy);
    leave();
    await expect(waiting).resolves.toBe("in");
  });

  it("is left by work that fails, and by one once only", async () => {
    const gate = new Gate({ atOnce: 2, waiting: 0, waitMs: 0 });
    const leave = await gate.enter();
    const failing = () => {
      throw new Error("broken");
    };
    await expect(gate.run(failing)).rejects.toThrow("broken");
    expect(gate.inside).toBe(1);
    leave();
    leave();
    expect(gate.inside).toBe(0);
  });
});
