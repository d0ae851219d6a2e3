import type { Project, VariableGroup } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleJob, exampleWorker } from "../../../test/kit/operator/projects.ts";
import { contentOfData } from "./contents.ts";
import { foreignSecrets, sharedRuns } from "./shared.ts";

const ref = { namespace: "slipway-org-alpha", name: "pshop" };
const group: VariableGroup = {
  apiVersion: "slipway.dev/v1alpha1",
  kind: "VariableGroup",
  metadata: { name: "mail" },
  spec: { displayName: "Mail", secretRef: { name: "mail-values" } },
};

test("Secrets of others are those that /v1 did not create, of what has instances", () => {
  const envsFrom = [
    { name: "vault" },
    { name: "pshop-env-0123456789ab" },
    { name: "pother-env-0123456789ab" },
    { name: "referring", references: [{ reference: "shop-db.host" }] },
  ];
  expect(foreignSecrets(exampleWorker(ref, { envsFrom }))).toEqual(["vault", "pother-env-0123456789ab"]);
  expect(foreignSecrets(exampleJob(ref, { envsFrom }))).toEqual([]);
});

test("groups come first, in their order, as one copy; one that does not exist, or is being deleted, is named", () => {
  const spec: Partial<Project["spec"]> = { variableGroups: ["gone", "mail"], envsFrom: [{ name: "vault" }] };
  const worker = exampleWorker(ref, spec);
  const find = (name: string) => (name === "mail" ? group : undefined);
  const problem = (name: string) => ({
    reason: "VariableGroupNotFound",
    message: `The variable group ${name} does not exist`,
  });
  const mail = { key: "VariableGroup/mail", secret: "mail-values", group: "mail" };
  expect(sharedRuns(worker, find)).toEqual([
    {
      keys: ["VariableGroup/gone", "VariableGroup/mail"],
      isOfGroups: true,
      sources: [mail],
      problem: problem("gone"),
    },
    { keys: ["Secret/vault"], isOfGroups: false, sources: [{ key: "Secret/vault", secret: "vault" }] },
  ]);
  const deleted = { ...group, metadata: { ...group.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  const job = exampleJob(ref, { variableGroups: ["mail"] });
  expect(sharedRuns(job, () => deleted)).toMatchObject([{ problem: problem("mail") }]);
  expect(sharedRuns(job, find)).toEqual([
    { keys: ["VariableGroup/mail"], isOfGroups: true, sources: [mail] },
  ]);
});

test("Secrets of others are one copy where no Secret of the project's own separates them", () => {
  const envsFrom = ["one", "two", "pshop-env-0123456789ab", "three"].map((name) => ({ name }));
  const runs = sharedRuns(exampleWorker(ref, { envsFrom }), () => undefined);
  expect(runs.map(({ keys }) => keys)).toEqual([["Secret/one", "Secret/two"], ["Secret/three"]]);
});

test("content is the same in any order, and another with another name or value", () => {
  const { digest, bytes } = contentOfData({ A: "YQ==", B: "Yg==" });
  expect(contentOfData({ B: "Yg==", A: "YQ==" }).digest).toBe(digest);
  expect(contentOfData({ A: "YQ==", C: "Yg==" }).digest).not.toBe(digest);
  expect(contentOfData({ A: "YQ==", B: "Yw==" }).digest).not.toBe(digest);
  expect(bytes).toBe(4);
});

test("a variable that Linux passes to no process is named", () => {
  const value = (bytes: number) => Buffer.alloc(bytes, "x").toString("base64");
  expect(contentOfData({ A: value(131_069) }).tooLong).toBeUndefined();
  expect(contentOfData({ A: value(131_070) }).tooLong).toBe("A");
});
