import { fileURLToPath } from "node:url";
import { labels, type ProjectSpec } from "@slipway/crds";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  chartCatalog,
  type DatabaseCase,
  databaseOf,
  exampleDatabase,
} from "../../../test/kit/databases/examples.ts";
import { goldenTests } from "../../../test/kit/operator/golden.ts";
import type { DesiredObject } from "../desired.ts";
import type { Database } from "./database.ts";
import { databaseDrivers } from "./drivers.ts";
import { OUTSIDE_TYPES } from "./settings.ts";

interface Container {
  name: string;
  resources: Record<"limits" | "requests", Record<string, string>>;
  securityContext: object;
  ports: { name: string }[];
  volumeMounts: { name: string }[];
}

interface PodTemplate {
  metadata: { labels: Record<string, string> };
  spec: { securityContext: object; containers: Container[]; volumes: { name: string }[] };
}

/** What is read of a desired object here, whatever its kind. */
interface Spec {
  replicas?: number;
  selector?: { matchLabels?: Record<string, string> };
  template?: PodTemplate;
  volumeClaimTemplates?: { metadata: { name: string } }[];
  ports?: { targetPort: string }[];
}

interface Case {
  database: Database;
  objects: DesiredObject[];
}

/** Every engine on every plan that has it, with any version, instances and storage that the plan allows. */
const offers = chartCatalog.databasePlans.flatMap(({ plan, engines }) =>
  Object.entries(engines).map(([type, offer]) => ({ plan, type: type as ProjectSpec["type"], ...offer })),
);

const cases = fc
  .constantFrom(...offers)
  .chain(({ plan, type, versions, instances, storage }) =>
    fc.record({
      plan: fc.constant(plan),
      type: fc.constant(type),
      version: fc.constantFrom(...versions),
      instances: type === "valkey" ? fc.constant(undefined) : fc.integer(instances),
      capacity: storage.max > 0 ? fc.integer(storage) : fc.constant(undefined),
      paused: fc.boolean(),
      surplus: fc.integer({ min: 0, max: 2 }),
      outside: fc.constantFrom(...OUTSIDE_TYPES),
      ranges: fc.subarray(["0.0.0.0/0", "203.0.113.0/24", "2001:db8::/32"], {
        minLength: type === "valkey" ? 0 : 1,
      }),
    }),
  )
  .map(({ plan, type, version, instances, capacity, paused, surplus, outside, ranges }): Case => {
    const project = exampleDatabase({
      plan,
      type,
      version,
      instances,
      paused,
      profile: type === "valkey" ? valkeyProfile(plan) : undefined,
      storage: capacity === undefined ? undefined : { persistent: true, capacity },
      networkAccess: ranges.length > 0 ? { ingressWhiteList: ranges.map((cidr) => ({ cidr })) } : undefined,
    });
    const derived = databaseOf({ project, outside: { type: outside } });
    const replicas = derived.replicas === 0 ? 0 : derived.replicas + surplus;
    const database = { ...derived, replicas, members: Math.max(replicas, derived.members) };
    return { database, objects: desired(database) };
  });

function valkeyProfile(plan: string): ProjectSpec["profile"] {
  return plan.startsWith("cache") ? "cache" : plan.startsWith("queue") ? "queue" : "key_value";
}

const specOf = ({ spec }: DesiredObject) => spec as Spec;
const setsOf = ({ objects }: Case) => objects.filter(({ kind }) => kind === "StatefulSet").map(specOf);
const templatesOf = (one: Case) => setsOf(one).flatMap(({ template }) => template ?? []);
const containersOf = (one: Case) => templatesOf(one).flatMap(({ spec }) => spec.containers);

const desired = (database: Database) => databaseDrivers().get(database.type)?.desired(database) ?? [];

const always = (claim: (one: Case) => void) => fc.assert(fc.property(cases, claim), { numRuns: 200 });

describe.each([...databaseDrivers().keys()])("the objects of a %s", (engine) => {
  goldenTests(fileURLToPath(new URL(`${engine}/testdata`, import.meta.url)), (input) =>
    desired(databaseOf(input as DatabaseCase)),
  );
});

describe("the objects of every database", () => {
  test("are in its namespace, have its labels, and have names of their own", () => {
    always(({ database, objects }) => {
      expect(objects.length).toBeGreaterThan(4);
      for (const { metadata } of objects) {
        expect(metadata).toMatchObject({
          namespace: database.namespace,
          labels: { [labels.project]: database.id, [labels.type]: database.type },
        });
        // The applier makes the project their owner.
        expect(metadata.ownerReferences).toBeUndefined();
      }
      const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
    });
  });

  test("run no container as root, with a capability or with a file system that it could write to", () => {
    always((one) => {
      for (const { spec } of templatesOf(one)) {
        expect(spec).toMatchObject({
          enableServiceLinks: false,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
        });
      }
      for (const { securityContext } of containersOf(one)) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          capabilities: { drop: ["ALL"] },
          readOnlyRootFilesystem: true,
        });
      }
    });
  });

  test("limit the processor and the memory of every container", () => {
    always((one) => {
      for (const { resources } of containersOf(one)) {
        for (const amounts of [resources.limits, resources.requests]) {
          expect(amounts).toMatchObject({
            cpu: expect.any(String) as string,
            memory: expect.any(String) as string,
          });
        }
      }
    });
  });

  test("mount volumes that exist", () => {
    always((one) => {
      for (const { template, volumeClaimTemplates = [] } of setsOf(one)) {
        const claims = volumeClaimTemplates.map(({ metadata }) => metadata.name);
        const volumes = [...claims, ...(template?.spec.volumes ?? []).map(({ name }) => name)];
        const mounts = template?.spec.containers.flatMap(({ volumeMounts }) => volumeMounts) ?? [];
        expect(volumes).toEqual(expect.arrayContaining(mounts.map(({ name }) => name)));
        expect(new Set(volumes).size).toBe(volumes.length);
      }
    });
  });

  test("select the pods of their own StatefulSet alone, and serve ports that one of their containers has", () => {
    always((one) => {
      const sets = setsOf(one);
      for (const { selector, template } of sets) {
        const { matchLabels = {} } = selector ?? {};
        expect(template?.metadata.labels).toMatchObject(matchLabels);
        const selected = sets.filter((other) => hasLabels(other.template, matchLabels));
        expect(selected).toHaveLength(1);
      }
      const ports = containersOf(one).flatMap(({ ports }) => ports.map(({ name }) => name));
      for (const service of one.objects.filter(
        ({ kind, metadata }) => kind === "Service" && !isOfNode(metadata.name),
      )) {
        expect(ports).toEqual(
          expect.arrayContaining((specOf(service).ports ?? []).map((port) => port.targetPort)),
        );
      }
    });
  });

  test("have a PodDisruptionBudget for the instances where there are several, and none for one", () => {
    always(({ database, objects }) => {
      const budgets = objects.filter(
        ({ kind, metadata }) => kind === "PodDisruptionBudget" && metadata.name === database.names.main,
      );
      expect(budgets).toHaveLength(database.replicas > 1 ? 1 : 0);
    });
  });

  test("stop every pod while it is paused", () => {
    always((one) => {
      if (one.database.paused) {
        expect(setsOf(one).map(({ replicas }) => replicas)).toEqual(setsOf(one).map(() => 0));
      }
    });
  });

  test("have no password, and no Secret", () => {
    always(({ objects }) => {
      expect(JSON.stringify(objects)).not.toContain("password-of-");
      expect(objects.map(({ kind }) => kind)).not.toContain("Secret");
    });
  });

  test("give clients outside an address where the lists admit one, by the platform's type of Service", () => {
    always(({ database, objects }) => {
      const outside = objects.filter(({ metadata }) => metadata.name === database.names.outside);
      expect(outside.map(specOf)).toMatchObject(database.outside ? [{ type: database.outside.type }] : []);
    });
  });

  test("are the same each time", () => {
    always(({ database, objects }) => {
      expect(desired(database)).toEqual(objects);
    });
  });
});

function hasLabels(template: PodTemplate | undefined, wanted: Record<string, string>): boolean {
  return Object.entries(wanted).every(([key, value]) => template?.metadata.labels[key] === value);
}

/** Valkey's Services of one pod have the Sentinel's port, also where no Sentinel runs. */
function isOfNode(name: string): boolean {
  return name.includes("-node-");
}
