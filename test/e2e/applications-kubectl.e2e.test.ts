import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { KubernetesObject } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";
import { namespaceOf, stack } from "./support/stack.ts";

interface ProjectObject extends KubernetesObject {
  spec: Record<string, unknown> & { image?: { url: string } };
  status?: { domain?: string; conditions?: { type: string; status: string }[] };
}

const example = join(import.meta.dirname, "../../docs/resources/examples/project-http.yaml");

/** The documented example, moved to the stack's organization and to an image that its nodes can pull. */
async function documented(name: string): Promise<ProjectObject> {
  const project = parse(await readFile(example, "utf8")) as ProjectObject;
  project.metadata = { ...project.metadata, name, namespace: namespaceOf(stack.organization) };
  delete project.spec.envsFrom;
  project.spec.image = { ...project.spec.image, url: stack.imageHttp };
  delete project.spec.subdomain;
  return project;
}

test("the documented Project reaches Ready by kubectl apply, and serves", async () => {
  const applied = await cluster.objects.patch(
    await documented("documented-example"),
    undefined,
    undefined,
    "kubectl",
    true,
    "application/apply-patch+yaml",
  );
  try {
    const domain = await eventually(async () => {
      const { status } = (await cluster.objects.read(applied as never)) as unknown as ProjectObject;
      expect(status?.conditions?.find(({ type }) => type === "Ready")).toMatchObject({ status: "True" });
      return status?.domain ?? "";
    });
    expect((await throughIngress(domain)).status).toBe(200);
  } finally {
    await cluster.objects.delete(applied as never);
  }
});

// Shows: docs/applications.md#conventions: the same rules hold for `kubectl`
test("an invalid Project is refused by the cluster itself with a message that names the field", async () => {
  const invalid = await documented("invalid-example");
  invalid.spec.port = 70_000;
  invalid.spec.exposure = "private";
  invalid.spec.subdomain = "not-with-private";
  await expect(cluster.objects.create(invalid)).rejects.toThrow(/spec\.port|subdomain/);
});
