import { silentLogger } from "@slipway/process";
import { describe, expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { LogArchiver } from "./log-archiver.ts";
import type { RunLogSource, RunLogs } from "./ports.ts";

const run = (runId = "r", organizationId = "o"): RunLogSource => ({
  organizationId,
  namespace: "n",
  projectId: "p",
  runId,
  scheduledAt: new Date(0),
  podName: "pod",
});

const noFollow: RunLogs["follow"] = () => Promise.reject(new Error("it cannot be followed"));

function archiving(archive: RunLogs["archive"], follow = noFollow) {
  const clock = new FakeClock();
  const woken: string[] = [];
  const logArchiver = new LogArchiver({
    logs: { archive, follow },
    clock,
    log: silentLogger,
    limits: { total: 2, perKey: 2 },
  });
  logArchiver.onArchived((key) => woken.push(key));
  return { clock, logArchiver, woken };
}

describe("a log", () => {
  test("that is kept wakes the run's key", async () => {
    const { clock, logArchiver, woken } = archiving(async () => "stored");
    expect(logArchiver.archive("n/p", "u", run(), false)).toBeUndefined();
    await clock.advance(0);
    expect(woken).toEqual(["n/p"]);
    expect(logArchiver.archive("n/p", "u", run(), false)).toBe("stored");
  });

  test("that fails is tried again for 30 s, and abandoned only when the ledger answers", async () => {
    const { clock, logArchiver } = archiving(() => Promise.reject(new Error("unavailable")));
    logArchiver.archive("n/p", "u", run(), false);
    await clock.advance(300_000);
    expect(logArchiver.archive("n/p", "u", run(), true)).toBeUndefined();
    await clock.advance(9_000);
    expect(logArchiver.archive("n/p", "u", run(), true)).toBeUndefined();
    await clock.advance(5_000);
    expect(logArchiver.archive("n/p", "u", run(), true)).toBe("unavailable");
  });

  test("that fails is not tried again once it is stopped", async () => {
    let tried = 0;
    const { clock, logArchiver } = archiving(() => {
      tried += 1;
      return Promise.reject(new Error("unavailable"));
    });
    logArchiver.archive("n/p", "u", run(), false);
    await clock.advance(5_000);
    logArchiver.stop();
    await clock.advance(0);
    const before = tried;
    logArchiver.archive("n/p", "u2", run("r2"), false);
    await clock.advance(300_000);
    expect(before).toBeGreaterThan(1);
    expect(tried).toBe(before);
    expect(clock.pending).toBe(0);
  });

  test("that hangs does not keep the others from being read", async () => {
    const { clock, logArchiver } = archiving(({ runId }, signal) =>
      runId === "good"
        ? Promise.resolve("stored")
        : new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
          }),
    );
    for (const name of ["hangs1", "hangs2", "good"]) {
      logArchiver.archive("n/p", name, run(name), false);
    }
    await clock.advance(16_000);
    expect(logArchiver.archive("n/p", "good", run("good"), false)).toBe("stored");
  });

  test("of another organization is read immediately while forty hang", async () => {
    const clock = new FakeClock();
    const archive: RunLogs["archive"] = ({ organizationId }) =>
      organizationId === "good" ? Promise.resolve("stored") : new Promise(() => undefined);
    const logArchiver = new LogArchiver({ logs: { archive, follow: noFollow }, clock, log: silentLogger });
    for (let index = 0; index < 40; index += 1) {
      logArchiver.archive("n/p", `u${index}`, run(`hangs${index}`, "o"), false);
    }
    const good = () => logArchiver.archive("n/p", "good", run("good", "good"), false);
    good();
    await clock.advance(0);
    expect(good()).toBe("stored");
  });
});

describe("a log that was followed", () => {
  /** A followed log; a test ends it. */
  const following = (stored: string[]) => {
    const end = Promise.withResolvers<void>();
    const store = async () => {
      stored.push("followed");
      return "stored" as const;
    };
    return { end: end.resolve, follow: async () => ({ ended: end.promise, store }) };
  };

  test("is not used when the node still has it", async () => {
    const stored: string[] = [];
    const { follow } = following(stored);
    const { clock, logArchiver } = archiving(async () => "stored", follow);
    await logArchiver.follow("u", run());
    logArchiver.archive("n/p", "u", run(), false);
    await clock.advance(0);
    expect(logArchiver.archive("n/p", "u", run(), false)).toBe("stored");
    expect(stored).toEqual([]);
  });

  test("is kept when its node has removed it, once nothing more comes", async () => {
    const stored: string[] = [];
    const { follow, end } = following(stored);
    const { clock, logArchiver, woken } = archiving(async () => "unavailable", follow);
    await logArchiver.follow("u", run());
    logArchiver.archive("n/p", "u", run(), false);
    await clock.advance(1_000);
    expect(stored).toEqual([]);
    end();
    await clock.advance(0);
    expect(logArchiver.archive("n/p", "u", run(), false)).toBe("stored");
    expect(stored).toEqual(["followed"]);
    expect(woken).toEqual(["n/p"]);
  });

  test("is kept as far as it came when its node falls silent", async () => {
    const stored: string[] = [];
    const { follow } = following(stored);
    const { clock, logArchiver } = archiving(() => Promise.reject(new Error("silent")), follow);
    await logArchiver.follow("u", run());
    logArchiver.archive("n/p", "u", run(), true);
    await clock.advance(29_000);
    expect(logArchiver.archive("n/p", "u", run(), true)).toBeUndefined();
    await clock.advance(10_000);
    expect(logArchiver.archive("n/p", "u", run(), true)).toBe("stored");
    expect(stored).toEqual(["followed"]);
  });

  test("is not kept by one that has stopped: the next leader reads all of it", async () => {
    const stored: string[] = [];
    const { follow, end } = following(stored);
    const { clock, logArchiver, woken } = archiving(async () => "unavailable", follow);
    await logArchiver.follow("u", run());
    logArchiver.archive("n/p", "u", run(), true);
    await clock.advance(1_000);
    logArchiver.stop();
    end();
    await clock.advance(60_000);
    expect(stored).toEqual([]);
    expect(woken).toEqual([]);
  });
});
