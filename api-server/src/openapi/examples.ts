import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";

/** Ids in the examples of path parameters and failures; those of bodies are in each feature's `examples.yaml`. */
export const EXAMPLE_ID = "p4k8z1m6x0c3v9b2n7q5";
/** Id of a run of it: that of 2026-11-21T03:00Z. */
export const EXAMPLE_RUN_ID = `${EXAMPLE_ID}-29920500`;
export const EXAMPLE_BACKUP_ID = `${EXAMPLE_ID}-b29928540`;
export const EXAMPLE_CONNECTION_ID = "g7f2k9d4s1x8w3q6z5t0";
export const EXAMPLE_REPOSITORY_ID = "rMTc-0a1b2c3d4e5f";
export const EXAMPLE_BUILD_ID = "b5q2m8n1v7c4x0z9l3k6";

/** The feature folders that have an `examples.yaml`. */
const FEATURES = [
  "analytics",
  "backups",
  "builds",
  "catalog",
  "databases",
  "domains",
  "git",
  "jobs",
  "logs",
  "metrics",
  "openapi",
  "projects",
];

/** Examples of one operation. Tests check all of them against the schemas, and send the bodies of creations. */
const operationExamples = z.strictObject({
  /** Bodies to send, by name. */
  requests: z.record(z.string(), z.strictObject({ summary: z.string(), value: z.unknown() })).optional(),
  /** Of successful responses, by status. */
  responses: z.record(z.string().regex(/^2\d\d$/), z.unknown()),
});
const featureExamples = z.record(z.string(), operationExamples);

export type OperationExamples = z.infer<typeof operationExamples>;

/** By operation id. An operation without any fails a test. */
export const examples: Readonly<Record<string, OperationExamples>> = Object.fromEntries(
  FEATURES.flatMap((feature) => Object.entries(readExamples(feature))),
);

/** @throws Error that names the file, when it cannot be read or is not valid */
function readExamples(feature: string): Record<string, OperationExamples> {
  try {
    const text = readFileSync(new URL(`../${feature}/examples.yaml`, import.meta.url), "utf8");
    return featureExamples.parse(parse(text));
  } catch (error) {
    throw new Error(`no valid examples in ${feature}/examples.yaml`, { cause: error });
  }
}
