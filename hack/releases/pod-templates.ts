/** Templates of tenants' pods, as the operator's golden files have them. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { hashJson, type KubernetesObject } from "@slipway/controller-runtime";
import { parseAllDocuments } from "yaml";
import { root } from "../lib/paths.ts";

const OPERATOR = join(root, "operator/src");
const KINDS = ["Deployment", "StatefulSet", "CronJob"];

interface Workload extends KubernetesObject {
  spec: { template: object } | { jobTemplate: { spec: { template: object } } };
}

/** Hashes of pods' templates, by case, kind and name: `applications/testdata/public Deployment p1`. Another one replaces pods, or begins a deployment of a job. */
export function readPodTemplates(): Record<string, string> {
  const files = readdirSync(OPERATOR, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith("/want.yaml"),
  );
  const templates = files
    .sort()
    .flatMap((file) =>
      workloadsOf(readFileSync(join(OPERATOR, file), "utf8")).map(
        ({ kind, metadata, spec }) =>
          [`${dirname(file)} ${kind} ${metadata?.name}`, hashJson(templateOf(spec))] as const,
      ),
    );
  return Object.fromEntries(templates);
}

const templateOf = (spec: Workload["spec"]): object =>
  "jobTemplate" in spec ? spec.jobTemplate.spec.template : spec.template;

function workloadsOf(text: string): Workload[] {
  const objects = parseAllDocuments(text).map((document) => document.toJS() as Workload | null);
  return objects.filter((object) => object !== null && KINDS.includes(object.kind ?? "")) as Workload[];
}
