import { KubeClient, type KubernetesObject, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import type { OrganizationUsage } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { difference, reconcileUsage } from "./usage.ts";

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

test("the bytes of a variable group are corrected, as those of a project's variables are", async () => {
  const secrets = new Store({});
  const own = { "app.kubernetes.io/managed-by": "slipway", "slipway.dev/variable-group": "vmail" };
  const metadata = { namespace: "slipway-org-acme", name: "vmail-values", uid: "1", resourceVersion: "1" };
  const annotations = { "slipway.dev/env-bytes": "7" };
  const foreign = { ...metadata, name: "vault", uid: "2", annotations };
  secrets.replace(
    [{ metadata: { ...metadata, labels: own, annotations } }, { metadata: foreign }] as KubernetesObject[],
    "1",
  );
  const projects = new Store<Project>({});
  projects.replace([], "1");
  const recorded: OrganizationUsage[] = [];
  const ledger = {
    list: async () => [secret("vmail-values")],
    record: async (found: readonly OrganizationUsage[]) => void recorded.push(...found),
    release: async () => {},
  };
  const client = KubeClient.forUrl("http://127.0.0.1:9");
  await reconcileUsage(
    { ledger, projects, secrets, client, log: silentLogger },
    new AbortController().signal,
  );
  expect(recorded).toEqual([
    { organizationId: "acme", kind: "variableBytes", name: "vmail-values", amount: 7 },
  ]);
  await client.close();
});
