import type { OrganizationUsage } from "@slipway/ledger";
import { expect, test } from "vitest";
import { difference } from "./usage.ts";

const project = (name: string, idleSeconds = 600) => ({
  organizationId: "acme",
  kind: "projects" as const,
  name,
  amount: 1,
  idleSeconds,
});
const domains = (amount: number, idleSeconds = 600) => ({
  ...project("p1", idleSeconds),
  kind: "customDomains" as const,
  amount,
});
const secret = (name: string, idleSeconds = 600) => ({
  ...project(name, idleSeconds),
  kind: "variableBytes" as const,
  amount: 100,
});
const there = ({ idleSeconds: _, ...usage }: OrganizationUsage & { idleSeconds: number }) => usage;
const compare = (rows: ReturnType<typeof project | typeof domains | typeof secret>[], found: typeof rows) => {
  const secrets = new Set(["acme/p1-env-1"]);
  const { missing, deleted } = difference(rows, found.map(there), secrets, 120);
  const key = ({ kind, name }: OrganizationUsage) => `${kind} ${name}`;
  return [missing.map(key), deleted.map(key)];
};

test("an account that matches is unchanged", () => {
  const matching = [project("p1"), domains(2), secret("p1-env-1")];
  expect(compare(matching, [project("p1"), domains(2)])).toEqual([[], []]);
});

test("what kubectl wrote is added, and corrected", () => {
  expect(compare([], [project("p1")])).toEqual([["projects p1"], []]);
  expect(compare([domains(1)], [domains(3)])).toEqual([["customDomains p1"], []]);
});

test("what was deleted is removed", () => {
  expect(compare([project("p1"), secret("p1-env-2")], [])).toEqual([
    [],
    ["projects p1", "variableBytes p1-env-2"],
  ]);
});

test("what was reserved lately is left alone", () => {
  const lately = [project("p2", 5), domains(1, 5), secret("p2-env-1", 5)];
  expect(compare(lately, [domains(3)])).toEqual([[], []]);
});
