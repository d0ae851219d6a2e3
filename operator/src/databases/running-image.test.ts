import { resources } from "@slipway/controller-runtime";
import type { EngineName, Project } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { databaseOf, exampleDatabase, podOf } from "../../../test/kit/databases/examples.ts";
import type { Database } from "./database.ts";
import type { DatabaseDriver, LivePod, LiveStatefulSet } from "./driver.ts";
import { databaseDrivers } from "./drivers.ts";
import { withRunningImage } from "./running-image.ts";

const OFFERED = "registry.example/offered@sha256:1";
const RUNNING = "registry.example/running@sha256:2";

const specs: Readonly<Record<EngineName, Partial<Project["spec"]>>> = {
  postgresql: { version: "17", plan: "db-basic" },
  mariadb: { version: "11", plan: "db-basic", instances: 3 },
  clickhouse: { version: "26.8.6.5", plan: "analytics-basic" },
  valkey: { version: "9.1.1", plan: "db-basic", instances: undefined, profile: "key_value" },
};

const databaseWith = (spec: Partial<Project["spec"]>, image: string): Database =>
  databaseOf({
    project: exampleDatabase({ storage: { persistent: true, capacity: 1 }, ...spec }),
    image: { image },
  });

/** The StatefulSet as the operator applied it for a database. */
function appliedFor(driver: DatabaseDriver, database: Database): LiveStatefulSet {
  const set = driver.desired(database).find(({ kind }) => kind === resources.statefulSets.kind);
  return set as LiveStatefulSet;
}

const ready: LivePod[] = [podOf(0, { role: "primary" })];

describe.each([...databaseDrivers()])("%s", (type, driver) => {
  const spec = { type, ...specs[type] };
  const offered = databaseWith(spec, OFFERED);
  const statefulSet = appliedFor(driver, databaseWith(spec, RUNNING));

  test("keeps the image that it runs from while nothing else of its template changes", () => {
    const kept = withRunningImage(driver, offered, { statefulSet, pods: ready });
    expect(kept.image).toEqual({ ...offered.image, image: RUNNING });
    expect(appliedFor(driver, kept)).toEqual(statefulSet);
  });

  test("takes the offered one with its next template", () => {
    const restarted = { ...offered, restartedAt: "2026-01-02T00:00:00Z" };
    const taken = withRunningImage(driver, restarted, { statefulSet, pods: ready });
    expect(taken.image.image).toBe(OFFERED);
  });

  test("takes the offered one while no instance works, and at its first start", () => {
    const broken = [podOf(0, { ready: false })];
    expect(withRunningImage(driver, offered, { statefulSet, pods: broken }).image.image).toBe(OFFERED);
    expect(withRunningImage(driver, offered, { statefulSet, pods: [] }).image.image).toBe(OFFERED);
    expect(withRunningImage(driver, offered, { pods: [] }).image.image).toBe(OFFERED);
  });

  test("takes the offered one where it runs as another user", () => {
    const other = { ...offered, image: { ...offered.image, uid: 4_711 } };
    expect(withRunningImage(driver, other, { statefulSet, pods: ready }).image.image).toBe(OFFERED);
  });
});
