import { ConditionSet } from "@slipway/controller-runtime";
import { type Project, type ProjectConditionCatalog, type ProjectStatus, projectStatus } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import type { Rollout } from "../applications/rollout.ts";
import { type Findings, summarize } from "./status.ts";
import { setDeployments, setPhase } from "./status-fields.ts";

const complete: Rollout = {
  observed: true,
  complete: true,
  wanted: 1,
  serving: 1,
  existing: 1,
  pulling: false,
  silent: false,
  identified: true,
};
const rolling: Rollout = { ...complete, complete: false, serving: 0 };
const route = { host: "shop.apps.example" };

function project(spec: Partial<Project["spec"]> = {}): Project {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: "p1", namespace: "slipway-org-alpha", generation: 4 },
    spec: {
      type: "http",
      name: "project",
      plan: "basic",
      paymentMode: "hourly",
      exposure: "public",
      image: { url: "registry.example/app:2", isPublic: true },
      ...spec,
    },
  };
}

/** Summarizes as the reconciler does, on top of an earlier status. */
function after(found: Findings, before: ProjectStatus = {}, of: Project = project()) {
  const status = structuredClone(before);
  const context = { now: new Date("2026-01-01T00:00:00Z"), generation: of.metadata.generation };
  const conditions = new ConditionSet<ProjectConditionCatalog>(status.conditions ?? [], context);
  conditions.set({ type: "Accepted", status: "True", reason: "Accepted" });
  summarize(of, found, conditions, status);
  setPhase(of, conditions, status);
  status.conditions = conditions.list();
  status.observedGeneration = of.metadata.generation;
  const reasons = Object.fromEntries(
    status.conditions.map(({ type, status: s, reason }) => [type, `${s}/${reason}`]),
  );
  return { status, reasons };
}

describe("summarize", () => {
  const findings: [string, Findings][] = [
    ["serves", { rollout: complete, route }],
    ["rolls out", { rollout: rolling, route }],
    ["is private", { rollout: complete }],
    ["waits for its volume", { rollout: rolling, volume: { bound: false } }],
    ["missed its deadline", { rollout: rolling, failure: "Nothing answers.", route }],
  ];
  test.each(findings)(
    "the status of a project that %s fits the resource's schema and its own rules",
    (_, found) => {
      const { status, reasons } = after(found);
      expect(projectStatus.safeParse(JSON.parse(JSON.stringify(status))).error).toBeUndefined();
      expect(status.conditions?.[0]?.type).toBe("Ready");
      expect(reasons.Ready?.startsWith("True")).toBe(status.phase === "running");
      expect(status.conditions?.every(({ observedGeneration }) => observedGeneration === 4)).toBe(true);
    },
  );

  test("remembers the image that serves until another one does", () => {
    const { status } = after({ rollout: { ...complete, imageDigest: `sha256:${"a".repeat(64)}` }, route });
    expect(status.image).toEqual({ reference: "registry.example/app:2", digest: `sha256:${"a".repeat(64)}` });
    const next = project({ image: { url: "registry.example/app:3", isPublic: true } });
    expect(after({ rollout: rolling, route }, status, next).status).toMatchObject({
      phase: "deploying",
      image: { reference: "registry.example/app:2" },
    });
  });

  test("saying the same twice changes nothing", () => {
    const { status } = after({ rollout: complete, route });
    expect(after({ rollout: complete, route }, status).status).toEqual(status);
  });

  test("a private project has neither domain nor address nor condition about them", () => {
    const { status } = after({ rollout: complete, route });
    const { status: hidden, reasons } = after(
      { rollout: complete },
      status,
      project({ exposure: "private" }),
    );
    expect(hidden.domain).toBeUndefined();
    expect(hidden.url).toBeUndefined();
    expect(reasons).not.toHaveProperty("DomainReady");
    expect(reasons.Ready).toBe("True/Ready");
  });

  test("a route that is missing keeps a complete rollout from being Ready", () => {
    const missing = { reason: "DomainPending", message: "Not yet." } as const;
    const { status, reasons } = after({ rollout: complete, route: { ...route, missing } });
    expect(reasons).toMatchObject({ Ready: "False/DomainPending", WorkloadAvailable: "True/Available" });
    expect(status.phase).toBe("creating");
  });

  test("a change of scale is distinguished from a new version", () => {
    const { status } = after({ rollout: complete, route });
    expect(after({ rollout: rolling, route }, status).reasons.Progressing).toBe("True/Scaling");
    const deployment = {
      id: "d1",
      status: "in_progress",
      startedAt: "2026-01-01T00:00:00Z",
      settingsHash: "hash",
      updatedImage: true,
      image: { reference: "app" },
      settings: { plan: "basic" },
    } as const;
    setDeployments(status, [deployment]);
    expect(after({ rollout: rolling, route }, status).reasons.Progressing).toBe("True/RollingOut");
    expect(status.lastDeployment).toMatchObject({ id: "d1", status: "in_progress", settingsHash: "hash" });
  });

  test("pausing is over only when no instance is left", () => {
    const { status } = after({ rollout: complete, route });
    const paused = project({ paused: true });
    const stopping = { ...complete, complete: false, wanted: 0, serving: 1 };
    expect(after({ rollout: stopping, route }, status, paused).reasons.Progressing).toBe("True/Pausing");
    const stopped = after(
      { rollout: { ...complete, wanted: 0, serving: 0, existing: 0 }, route },
      status,
      paused,
    );
    expect(stopped.status.phase).toBe("stopped");
    expect(stopped.reasons.Ready).toBe("False/Paused");
  });
});
