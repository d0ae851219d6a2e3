import type { KubernetesObject } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import { expect, test } from "vitest";
import { deleteOrphanedSecrets, signingSecrets } from "./secret.ts";

const now = new Date("2026-11-21T12:00:00Z");
const { signal } = new AbortController();
const of = { organizationId: "acme", webhookId: "w1" };
const encoded = (data: Record<string, string>) =>
  Object.fromEntries(Object.entries(data).map(([key, text]) => [key, btoa(text)]));

test("both secrets sign for as long as the one before does, then the new one alone", async () => {
  const read = (data: Record<string, string> | undefined) =>
    signingSecrets(
      { getOrUndefined: async () => data && ({ data: encoded(data) } as never) },
      of,
      now,
      signal,
    );
  const rotated = { current: "new", previous: "old" };
  expect(await read({ ...rotated, previousUntil: "2026-11-21T12:00:01Z" })).toEqual(["new", "old"]);
  expect(await read({ ...rotated, previousUntil: "2026-11-21T12:00:00Z" })).toEqual(["new"]);
  expect(await read({ current: "new" })).toEqual(["new"]);
  expect(await read(undefined)).toEqual([]);
});

test("Secrets without a webhook are deleted once no creation can be under way, and no others", async () => {
  const secret = (
    id: string,
    name = `${id}-webhook`,
    createdAt = "2026-11-21T11:00:00Z",
  ): KubernetesObject => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name,
      namespace: "slipway-org-acme",
      uid: "u",
      labels: { [labels.webhook]: id },
      creationTimestamp: createdAt,
    },
  });
  const secrets = [
    secret("w1"),
    secret("w2"),
    secret("w3", undefined, "2026-11-21T11:55:00Z"),
    secret("w4", "another"),
    { ...secret("w5"), metadata: { ...secret("w5").metadata, namespace: "slipway-system" } },
  ];
  const deleted: string[] = [];
  const count = await deleteOrphanedSecrets(
    {
      client: {
        delete: async (_: unknown, { name }: { name: string }) => {
          deleted.push(name);
        },
      } as never,
      secrets: { list: () => secrets },
      existing: async () => new Set(["w1"]),
    },
    now,
    signal,
  );
  expect([count, deleted]).toEqual([1, ["w2-webhook"]]);
});
