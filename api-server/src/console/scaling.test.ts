import { readFileSync } from "node:fs";
import { patchAutoscalingBody } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { saveScaling, scalingBody, scalingForm } from "../../console/lib/scaling.ts";
import type { Project } from "../../console/lib/shapes.ts";

describe("the form of a project's instances", () => {
  const autoscaling = { enabled: true, max_instances: 5, requests_per_second_target: 50 };
  const made = scalingForm({ instances: 2, autoscaling });

  it("changes what differs from the form as it was made", () => {
    expect(scalingBody(made, { ...made }, made)).toBeUndefined();
    const least = scalingBody(made, { ...made, least: "3" }, made);
    expect(patchAutoscalingBody.parse(least)).toEqual({ instances: 3 });
    const targets = scalingBody(made, { ...made, cpu: "70", requests: "" }, made);
    expect(patchAutoscalingBody.parse(targets)).toEqual({
      autoscaling: { enabled: true, max_instances: 5, cpu_target_percentage: 70 },
    });
  });

  it("adds an autoscaling, and removes it", () => {
    const none = scalingForm({ instances: 1 });
    const added = scalingBody(none, { ...none, isScaled: true, most: "4", memory: "80" }, none);
    expect(patchAutoscalingBody.parse(added)).toEqual({
      autoscaling: { enabled: true, max_instances: 4, memory_target_percentage: 80 },
    });
    const removed = scalingBody(made, { ...made, isScaled: false }, made);
    expect(patchAutoscalingBody.parse(removed)).toEqual({ autoscaling: null });
  });

  it("leaves one that is off as it is, until it is on", () => {
    const off = scalingForm({ instances: 1, autoscaling: { ...autoscaling, enabled: false } });
    expect(scalingBody(off, { ...off }, off)).toBeUndefined();
    expect(scalingBody(off, { ...off, isScaled: true }, off)).toEqual({ autoscaling });
  });

  it("removes one that is off where it is in the way of more instances", () => {
    const off = scalingForm({ instances: 1, autoscaling: { ...autoscaling, enabled: false } });
    expect(scalingBody(off, { ...off, least: "6" }, off)).toEqual({ instances: 6, autoscaling: null });
    expect(scalingBody(off, { ...off, least: "5" }, off)).toEqual({ instances: 5 });
  });

  it("keeps what others have changed since it was made", () => {
    const current = scalingForm({ instances: 1, autoscaling: { enabled: true, max_instances: 3 } });
    expect(scalingBody(made, { ...made, cpu: "70" }, current)).toEqual({
      autoscaling: { enabled: true, max_instances: 3, cpu_target_percentage: 70 },
    });
    expect(scalingBody(made, { ...made, least: "3" }, current)).toEqual({ instances: 3 });
    expect(scalingBody(made, { ...made, most: "3" }, current)).toBeUndefined();
  });

  it("has the API's bounds", () => {
    const source = readFileSync(new URL("../../console/views/scaling.ts", import.meta.url), "utf8");
    const bounds = [...source.matchAll(/const (\w+) = number\(([\d_]+),/g)].map(
      ([, field = "", most = ""]) => ({
        field,
        most: Number(most.replaceAll("_", "")),
      }),
    );
    expect(bounds.map(({ field }) => field)).toEqual(["least", "most", "cpu", "memory", "requests"]);
    expect(source).toContain("min: 1,");
    const isTaken = (field: string, value: number) => {
      const form = {
        ...scalingForm({ instances: 1 }),
        isScaled: field !== "least",
        most: "100",
        [field]: String(value),
      };
      return patchAutoscalingBody.safeParse(
        scalingBody(scalingForm({ instances: 2 }), form, scalingForm({ instances: 2 })),
      ).success;
    };
    for (const { field, most } of bounds) {
      expect(
        [field, 0, 1, most, most + 1].map((value) => typeof value === "number" && isTaken(field, value)),
      ).toEqual([false, false, true, true, false]);
    }
  });
});

describe("a form that is saved", () => {
  const project = (instances: number, cpu?: number) =>
    ({
      instances,
      ...(cpu === undefined
        ? {}
        : { autoscaling: { enabled: true, max_instances: 5, cpu_target_percentage: cpu } }),
    }) as Project;
  /** A project that has these states, each time that it is read. */
  const requests = (...states: (Project | Error)[]) => {
    const sent: object[] = [];
    const load = async () => {
      const state = states.shift();
      if (!state || state instanceof Error) {
        throw state ?? new Error("not read so often");
      }
      return state;
    };
    return { sent, load, send: async (body: object) => void sent.push(body) };
  };

  it("is followed by the project as it is then, of which the next form is made", async () => {
    const of = requests(project(1, 70), project(1, 80));
    const made = scalingForm(project(1, 70));
    const saved = await saveScaling(made, { ...made, cpu: "80" }, of);
    expect(saved).toEqual({ said: "Saved.", isSaved: true, project: project(1, 80) });
    expect(of.sent).toEqual([{ autoscaling: project(1, 80).autoscaling }]);
  });

  it("is saved, too, where the project cannot be read after that", async () => {
    const made = scalingForm(project(1));
    const saved = await saveScaling(made, { ...made, least: "2" }, requests(project(1), new Error("away")));
    expect(saved).toEqual({ said: "Saved.", isSaved: true });
  });

  it("sends nothing where it changes nothing, or an autoscaling that others have removed", async () => {
    const made = scalingForm(project(1, 70));
    const same = requests(project(1, 60));
    expect(await saveScaling(made, { ...made }, same)).toMatchObject({ isSaved: false });
    const removed = requests(project(1));
    expect(await saveScaling(made, { ...made, cpu: "80" }, removed)).toMatchObject({
      isSaved: false,
      said: expect.stringContaining("removed meanwhile"),
    });
    expect([...same.sent, ...removed.sent]).toEqual([]);
  });
});
