import { resources } from "@slipway/controller-runtime";
import type { EngineName, Project } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { databaseOf, exampleDatabase, type PodShape, podOf } from "../../../test/kit/databases/examples.ts";
import { FIRST_TEMPLATE_VERSION, NEWEST_TEMPLATE_VERSION } from "../workload/template-version.ts";
import type { Database } from "./database.ts";
import type { DatabaseDriver, LivePod, LiveStatefulSet } from "./driver.ts";
import { databaseDrivers } from "./drivers.ts";
import { withRunningTemplate } from "./running-template.ts";

const OFFERED = "registry.example/offered@sha256:1";
const RUNNING = "registry.example/running@sha256:2";

const specs: Readonly<Record<EngineName, Partial<Project["spec"]>>> = {
  postgresql: { version: "17", plan: "db-basic" },
  mariadb: { version: "11", plan: "db-basic", instances: 3 },
  clickhouse: { version: "26.8.6.5", plan: "analytics-basic" },
  valkey: { version: "9.1.1", plan: "db-basic", instances: undefined, profile: "key_value" },
};

const databaseWith = (spec: Partial<Project["spec"]>, image: string): Database => ({
  ...databaseOf({
    project: exampleDatabase({ storage: { persistent: true, capacity: 1 }, ...spec }),
    image: { image },
  }),
  templateVersion: FIRST_TEMPLATE_VERSION,
});

/** The StatefulSet as the operator applied it for a database. */
function appliedFor(driver: DatabaseDriver, database: Database): LiveStatefulSet {
  const set = driver
    .desired(database)
    .find(
      ({ kind, metadata }) => kind === resources.statefulSets.kind && metadata?.name === database.names.main,
    );
  return set as LiveStatefulSet;
}

/** A pod that was created from a StatefulSet. */
function podFrom(
  { spec }: LiveStatefulSet,
  ordinal: number,
  shape: PodShape & { waiting?: string } = {},
): LivePod {
  const pod = podOf(ordinal, shape);
  const { waiting } = shape;
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...spec?.template?.metadata?.annotations } },
    spec: { containers: spec?.template?.spec?.containers },
    status: {
      ...pod.status,
      ...(waiting && {
        containerStatuses: [{ name: "database", ready: false, state: { waiting: { reason: waiting } } }],
      }),
    },
  };
}

const replicas = (set: LiveStatefulSet, count: number): LiveStatefulSet => ({
  ...set,
  spec: { ...set.spec, replicas: count },
});

describe.each([...databaseDrivers()])("%s", (type, driver) => {
  const spec = { type, ...specs[type] };
  const offered = databaseWith(spec, OFFERED);
  const running = databaseWith(spec, RUNNING);
  const statefulSet = appliedFor(driver, running);
  const imageFor = (database: Database, live: Parameters<typeof withRunningTemplate>[2]) =>
    withRunningTemplate(driver, database, live).image.image;
  const pod = (ordinal: number, shape?: Parameters<typeof podFrom>[2]) =>
    podFrom(statefulSet, ordinal, shape);

  test("keeps the image that it runs from while nothing else of its template changes", () => {
    const kept = withRunningTemplate(driver, offered, { statefulSet, pods: [pod(0)] });
    expect(kept.image).toEqual({ ...offered.image, image: RUNNING });
    expect(appliedFor(driver, kept)).toEqual(statefulSet);
  });

  test("keeps it while an instance does not answer, starts again, or was just removed", () => {
    expect(imageFor(offered, { statefulSet, pods: [pod(0, { ready: false })] })).toBe(RUNNING);
    expect(imageFor(offered, { statefulSet, pods: [pod(0, { ready: false, deleting: true })] })).toBe(
      RUNNING,
    );
    expect(imageFor(offered, { statefulSet, pods: [] })).toBe(RUNNING);
    const crashing = [pod(0), pod(1, { ready: false, waiting: "CrashLoopBackOff" })];
    expect(imageFor(offered, { statefulSet, pods: crashing })).toBe(RUNNING);
  });

  test("keeps the version that it runs from, older or newer than that of new templates", () => {
    for (const [from, forNew] of [
      [FIRST_TEMPLATE_VERSION, NEWEST_TEMPLATE_VERSION],
      [NEWEST_TEMPLATE_VERSION, FIRST_TEMPLATE_VERSION],
    ] as const) {
      for (const image of [OFFERED, RUNNING]) {
        const set = appliedFor(driver, { ...databaseWith(spec, image), templateVersion: from });
        const live = { statefulSet: set, pods: [podFrom(set, 0)] };
        const kept = withRunningTemplate(driver, { ...offered, templateVersion: forNew }, live);
        expect(appliedFor(driver, kept)).toEqual(set);
        const restarted = { ...offered, templateVersion: forNew, restartedAt: "2026-01-02T00:00:00Z" };
        expect(withRunningTemplate(driver, restarted, live).templateVersion).toBe(forNew);
      }
    }
  });

  test("keeps the features of the image that it runs from", () => {
    const features = { pgStatStatements: false, replication: false };
    const lacking = { ...running, image: { ...running.image, features } };
    const set = appliedFor(driver, lacking);
    const live = { statefulSet: set, pods: [podFrom(set, 0)] };
    const kept = withRunningTemplate(driver, offered, live);
    expect(kept.image).toEqual({ ...offered.image, image: RUNNING, features });
    expect(appliedFor(driver, kept)).toEqual(set);
    const edited = {
      ...set,
      metadata: { ...set.metadata, annotations: { "slipway.dev/image-features": "{" } },
    };
    expect(() => withRunningTemplate(driver, offered, { ...live, statefulSet: edited })).not.toThrow();
  });

  test("has the version of new templates at its first start, and as it resumes", () => {
    const next = { ...offered, templateVersion: NEWEST_TEMPLATE_VERSION };
    const stopped = replicas(statefulSet, 0);
    expect(withRunningTemplate(driver, next, { pods: [] }).templateVersion).toBe(NEWEST_TEMPLATE_VERSION);
    expect(withRunningTemplate(driver, next, { statefulSet: stopped, pods: [] }).templateVersion).toBe(
      NEWEST_TEMPLATE_VERSION,
    );
  });

  test("each version renders another template", () => {
    const hashes = [1, 2].map((templateVersion) => {
      const { spec: rendered } = appliedFor(driver, { ...offered, templateVersion });
      return rendered?.template?.metadata?.annotations?.["slipway.dev/settings-hash"];
    });
    expect(new Set(hashes).size).toBe(NEWEST_TEMPLATE_VERSION);
  });

  test("takes the offered one at its first start, and as it resumes", () => {
    expect(imageFor(offered, { pods: [] })).toBe(OFFERED);
    expect(imageFor(offered, { statefulSet: replicas(statefulSet, 0), pods: [] })).toBe(OFFERED);
  });

  test("takes the offered one with its next template", () => {
    const restarted = { ...offered, restartedAt: "2026-01-02T00:00:00Z" };
    expect(imageFor(restarted, { statefulSet, pods: [pod(0)] })).toBe(OFFERED);
    const otherUser = { ...offered, image: { ...offered.image, uid: 4_711 } };
    expect(imageFor(otherUser, { statefulSet, pods: [pod(0)] })).toBe(OFFERED);
  });

  test("takes the offered one when an instance cannot start from its own, and stays with it", () => {
    const healthy = pod(0);
    const gone = [healthy, pod(1, { ready: false, waiting: "ImagePullBackOff" })];
    expect(imageFor(offered, { statefulSet, pods: gone })).toBe(OFFERED);
    const crashing = [pod(0, { ready: false, waiting: "CrashLoopBackOff" })];
    expect(imageFor(offered, { statefulSet, pods: crashing })).toBe(OFFERED);
    // The template has it by now, and the other instance is yet to be replaced.
    const next = appliedFor(driver, offered);
    expect(imageFor(offered, { statefulSet: next, pods: [healthy, podFrom(next, 1)] })).toBe(OFFERED);
  });

  test("returns to what ran when a change is taken back", () => {
    const changed = appliedFor(driver, { ...offered, restartedAt: "2026-01-02T00:00:00Z" });
    expect(imageFor(offered, { statefulSet: changed, pods: [pod(0)] })).toBe(RUNNING);
  });
});
