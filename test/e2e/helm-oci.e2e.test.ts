import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "../../hack/lib/exec.ts";
import { root, toolDir } from "../../hack/lib/paths.ts";
import { isLong } from "../kit/long.ts";
import { apiClient, type CreatedProject, httpProject } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { systemNamespace } from "./support/operator.ts";
import { createOrganization } from "./support/organization.ts";
import { stack } from "./support/stack.ts";

/** Newer than any release, so that it is made from these sources. */
const VERSION = "0.99.0";
/** The stack's own registry, which nodes pull from. */
const registry = stack.imageHttp.slice(0, stack.imageHttp.indexOf("/"));

const helm = (...args: string[]): Promise<string> =>
  run(join(toolDir, "helm"), [...args, "-n", systemNamespace, "--kubeconfig", stack.kubeconfig]);

/** Images of the platform's containers, and of those that start before them. */
async function platformImages(): Promise<string[]> {
  const { items } = await cluster.core.listNamespacedPod({ namespace: systemNamespace });
  const running = items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  return running.flatMap(({ spec }) =>
    [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ image }) => image ?? ""),
  );
}

test.skipIf(!isLong)(
  "the chart and the images of a bundle install from a registry, by digest and from nowhere else (--long)",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "slipway-oci-"));
    const bundle = join(folder, "bundle");
    // The registry's certificate is of the stack's own authority.
    const env = { SSL_CERT_FILE: stack.git.caFile };
    const release = (...args: string[]) => run(join(root, "hack/release.sh"), args, { env });
    await release(VERSION, "--out", bundle, "--programs", "off");
    const pushed = await release("push", bundle, registry);
    expect(pushed).toContain(`oci://${registry}/charts/slipway --version ${VERSION}`);
    const settings = join(folder, "settings.yaml");
    await writeFile(settings, await helm("get", "values", "slipway", "-o", "yaml"));
    const values = ["-f", settings, "-f", `${bundle}-values.yaml`];
    const from = [`oci://${registry}/charts/slipway`, "--version", VERSION, "--ca-file", stack.git.caFile];
    const history = await helm("history", "slipway", "--max", "1", "-o", "json");
    const [{ revision }] = JSON.parse(history) as [{ revision: number }];
    try {
      await helm("upgrade", "slipway", ...from, ...values, "--wait", "--timeout", "5m");
      await eventually(async () => {
        const images = await platformImages();
        expect(images.length).toBeGreaterThan(4);
        expect(
          images.filter((image) => !image.startsWith(`${registry}/`) || !image.includes("@sha256:")),
        ).toEqual([]);
      });
      const { api_key: key } = await createOrganization("From a registry");
      const call = apiClient(key);
      const created = await call<CreatedProject>("POST", "/v1/project", httpProject("from-registry"));
      const id = created.body.data?.project_id;
      await eventually(async () => {
        const { body } = await call<{ status: string }>("GET", `/v1/project/${id}`);
        expect(body.data?.status).toBe("running");
      });
    } finally {
      await helm("rollback", "slipway", String(revision), "--wait", "--timeout", "5m");
      await rm(folder, { recursive: true });
    }
  },
  1_500_000,
);
