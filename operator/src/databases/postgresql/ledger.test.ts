import { expect, test } from "vitest";
import { parse } from "yaml";
import { databaseOf, exampleDatabase } from "../../../../test/kit/databases/examples.ts";
import type { DesiredObject } from "../../desired.ts";
import { sharedConfig } from "./config.ts";
import { ledgerContainer, ledgerFiles, ledgerRules, ledgerSettings } from "./ledger.ts";
import { desired } from "./manifests.ts";

/** A project's database that is as large, and has as many members. */
const database = {
  ...databaseOf({ project: exampleDatabase({ instances: 1 }) }),
  members: 2,
  memoryBytes: 512 * 1024 * 1024,
  cpus: 1,
  storage: { capacityGb: 5, template: { size: "5Gi" } },
};
const objects = desired(database);

const find = <T>(kind: string): DesiredObject & T =>
  objects.find((object) => object.kind === kind) as DesiredObject & T;

interface Container {
  env: { name: string; value?: string; valueFrom?: object }[];
  ports: object[];
  [probe: string]: unknown;
}
const { containers } = find<{ spec: { template: { spec: { containers: Container[] } } } }>("StatefulSet").spec
  .template.spec;
const [theirs] = containers;

test("settings are those of a database with two members, but for who may connect and what is measured", () => {
  const { postgresql, ...rest } = ledgerSettings();
  const { postgresql: driver, ...others } = sharedConfig(database);
  expect(rest).toEqual(others);
  expect(rest.synchronous_mode).toBe("on");
  const own = Object.entries(driver.parameters).filter(
    ([name]) => name !== "shared_preload_libraries" && !name.startsWith("pg_stat_statements"),
  );
  expect(postgresql.parameters).toEqual(Object.fromEntries(own));
  expect(postgresql.pg_hba.slice(0, -1)).toEqual(driver.pg_hba.slice(0, -2));
  expect(postgresql.pg_hba.at(-1)).toBe("host all all all scram-sha-256");
});

test("Patroni starts with the driver's file, with its own labels", () => {
  const { data } = objects.find(
    ({ metadata }) => metadata.name === `${database.id}-patroni`,
  ) as DesiredObject & {
    data: Record<string, string>;
  };
  const { "patroni.yml": text = "", "first.yml": first = "", ...scripts } = ledgerFiles();
  const { "patroni.yml": driver = "", ...driverScripts } = data;
  expect(scripts).toEqual(driverScripts);
  const { bootstrap: _, ...expected } = parse(driver);
  const { namespace: __, ...kubernetes } = expected.kubernetes;
  expect(parse(text)).toEqual({
    ...expected,
    scope: "slipway-ledger",
    postgresql: {
      ...expected.postgresql,
      pre_promote: expected.postgresql.pre_promote.replace(`${database.id}-sync`, "slipway-ledger-sync"),
    },
    kubernetes: {
      ...kubernetes,
      scope_label: "app.kubernetes.io/name",
      labels: { "app.kubernetes.io/part-of": "slipway" },
    },
  });
  expect(Object.keys(parse(first))).toEqual(["bootstrap"]);
});

test("a member's container has the driver's environment, ports and probes", () => {
  const { env, ...rest } = ledgerContainer();
  for (const [name, value] of Object.entries(rest)) {
    expect([name, theirs?.[name]]).toEqual([name, value]);
  }
  const renamed = JSON.stringify(env).replaceAll("slipway-ledger-credentials", `${database.id}-credentials`);
  const own = theirs?.env.filter(({ name }) => name.startsWith("PATRONI_") || name.startsWith("PG")) ?? [];
  expect(own.length).toBeGreaterThan(15);
  expect(JSON.parse(renamed)).toEqual(expect.arrayContaining(own));
});

test("its account may do what that of a database may, to its own ConfigMaps and to two pods", () => {
  const { rules } = find<{ rules: { resourceNames?: string[] }[] }>("Role");
  const withoutNames = (list: readonly { resourceNames?: readonly string[] }[]) =>
    list.map(({ resourceNames: _, ...rule }) => rule);
  expect(withoutNames(ledgerRules())).toEqual(withoutNames(rules));
  expect(
    ledgerRules().flatMap((rule) => ("resourceNames" in rule ? (rule.resourceNames ?? []) : [])),
  ).toEqual([
    ...["config", "leader", "failover", "sync"].map((name) => `slipway-ledger-${name}`),
    ...["slipway-ledger-0", "slipway-ledger-1"],
  ]);
});
