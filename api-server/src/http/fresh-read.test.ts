import { describe, expect, it } from "vitest";
import { ApiMetrics } from "../metrics.ts";
import type { Projects } from "../projects/store.ts";
import { seeNewestWrite } from "./fresh-read.ts";

/** Projects in memory that are at version 10, and come to the asked one when they are waited for, or do not. */
function setUp(catchesUp: boolean) {
  const waits: [string, number][] = [];
  const projects = {
    hasSeen: (version: string) => Number(version) <= 10,
    waitUntilSeen: (version: string, timeoutMs: number) => {
      waits.push([version, timeoutMs]);
      return Promise.resolve(catchesUp);
    },
  } as unknown as Projects;
  const metrics = new ApiMetrics({ processMetrics: false });
  return { waits, metrics, services: { projects, metrics } };
}

describe("seeNewestWrite", () => {
  it.each([undefined, "9", "10"])("does not wait, nor promise, when %s is the newest write", (version) => {
    const { services, waits } = setUp(true);
    expect(seeNewestWrite(version, services)).toBeUndefined();
    expect(waits).toEqual([]);
  });

  it.each([
    [true, "seen"],
    [false, "timeout"],
  ])(
    "waits two seconds at most for a newer one, and counts how that ended (%s)",
    async (catchesUp, outcome) => {
      const { services, waits, metrics } = setUp(catchesUp);
      await seeNewestWrite("11", services);
      expect(waits).toEqual([["11", 2_000]]);
      expect(await metrics.registry.metrics()).toContain(
        `slipway_api_write_waits_total{outcome="${outcome}"} 1`,
      );
    },
  );
});
