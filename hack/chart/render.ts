import { join } from "node:path";
import { type Document, parseAllDocuments } from "yaml";
import { ensureBinary } from "../cluster/binaries.ts";
import { run } from "../lib/exec.ts";
import { root } from "../lib/paths.ts";

export const chartDir = join(root, "charts/slipway");

/** A rendered object, as far as tests look into it. */
export interface Rendered {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; annotations?: Record<string, string> };
  data?: Record<string, string>;
  [field: string]: unknown;
}

/** Runs the stack's own helm; resolves to its standard output. */
export async function helm(args: string[]): Promise<string> {
  // It runs for seconds: collecting garbage would be a third of its work.
  return run(await ensureBinary("helm"), args, { env: { GOGC: "off" } });
}

/** An empty list is a value of JSON alone. */
const setFlag = (set: string): string => (set.endsWith("=[]") ? "--set-json" : "--set");

/** Renders the chart as release `slipway` in `slipway-system` with a file of values, without a cluster. */
export async function renderChart(valuesFile: string, sets: string[] = []): Promise<Rendered[]> {
  const args = ["template", "slipway", chartDir, "--namespace", "slipway-system", "--values", valuesFile];
  // Built from source, helm has no Kubernetes version of its own to assume.
  const text = await helm([
    ...args,
    "--kube-version",
    "1.34.4",
    ...sets.flatMap((set) => [setFlag(set), set]),
  ]);
  return (parseAllDocuments(text) as Document[])
    .map((document) => document.toJS() as Rendered | null)
    .filter((object) => object !== null);
}
