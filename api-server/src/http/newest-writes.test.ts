import { describe, expect, it } from "vitest";
import { ApiMetrics } from "./api-metrics.ts";
import { type Memory, seeNewestWrite } from "./newest-writes.ts";

/** Projects in memory that are at version 10, and reach the requested version when they are waited for, or do not. */
function setUp(catchesUp: boolean) {
  const waits: [string, number][] = [];
  const memory: Memory = {
    hasSeen: (version: string) => Number(version) <= 10,
    waitUntilSeen: (version: string, timeoutMs: number) => {
      waits.push([version, timeoutMs]);
      return Promise.resolve(catchesUp);
    },
  };
  const metrics = new ApiMetrics({ processMetrics: false });
  return { waits, metrics, memory, services: { metrics } };
}

describe("seeNewestWrite", () => {
  it.each([undefined, "9", "10"])("does not wait, nor promise, when %s is the newest write", (version) => {
    const { memory, services, waits } = setUp(true);
    expect(seeNewestWrite(version, memory, services)).toBeUndefined();
    expect(waits).toEqual([]);
  });

  it.each([
    [true, "seen"],
    [false, "timeout"],
  ])(
    "waits two seconds at most for a newer one, and counts how that ended (%s)",
    async (catchesUp, outcome) => {
      const { memory, services, waits, metrics } = setUp(catchesUp);
      await seeNewestWrite("11", memory, services);
      expect(waits).toEqual([["11", 2_000]]);
      expect(await metrics.registry.metrics()).toContain(
        `slipway_api_write_waits_total{outcome="${outcome}"} 1`,
      );
    },
  );
});
