import type { Project, VariableGroup } from "@slipway/crds";
import { expect, test } from "vitest";
import { exampleJob, exampleWorker } from "../../../test/kit/operator/projects.ts";
import { contentOfData } from "./contents.ts";
import { foreignSecrets, sharedSources } from "./shared.ts";

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

test("groups come first, in their order; one that is being deleted is none", () => {
  const spec: Partial<Project["spec"]> = { variableGroups: ["gone", "mail"], envsFrom: [{ name: "vault" }] };
  const worker = exampleWorker(ref, spec);
  const find = (name: string) => (name === "mail" ? group : undefined);
  expect(sharedSources(worker, find)).toEqual([
    {
      key: "VariableGroup/gone",
      reason: "VariableGroupNotFound",
      message: "The variable group gone does not exist",
    },
    { key: "VariableGroup/mail", secret: "mail-values", group: "mail" },
    { key: "Secret/vault", secret: "vault" },
  ]);
  const deleted = { ...group, metadata: { ...group.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  expect(sharedSources(exampleJob(ref, { variableGroups: ["mail"] }), () => deleted)).toMatchObject([
    { reason: "VariableGroupNotFound" },
  ]);
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
