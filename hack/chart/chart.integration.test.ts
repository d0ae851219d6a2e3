import { createPrivateKey } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import { startApiserver, type TestApiserver } from "../cluster/apiserver.ts";
import { run } from "../lib/exec.ts";
import { chartDir, helm, type Rendered, renderChart } from "./render.ts";

interface WorkloadSpec {
  template: { spec: { serviceAccountName?: string; volumes?: unknown[] } };
  volumeClaimTemplates?: { metadata: { name: string } }[];
}

const testdata = join(chartDir, "testdata");
const cases = readdirSync(testdata);
const valuesOf = (name: string): string => join(testdata, name, "values.yaml");

/** A rendering without what is made anew each time, and without the generated files, which have tests of their own. */
function settled(objects: Rendered[]): Rendered[] {
  const catalog = parse(readFileSync(join(chartDir, "files/catalog.yaml"), "utf8")) as unknown;
  return objects
    .filter((object) => object.kind !== "CustomResourceDefinition")
    .map((object) => {
      if (object.metadata.name === "slipway-catalog" && object.data?.["catalog.yaml"]) {
        const same = JSON.stringify(parse(object.data["catalog.yaml"])) === JSON.stringify(catalog);
        if (same) return { ...object, data: { "catalog.yaml": "(files/catalog.yaml)" } };
      }
      if (object.kind === "Role" || object.kind === "ClusterRole")
        return { ...object, rules: "(files/rbac)" };
      if (object.kind === "Secret" && object.data) {
        const data = Object.fromEntries(Object.keys(object.data).map((key) => [key, "(made)"]));
        return { ...object, data };
      }
      return object;
    })
    .sort((a, b) => `${a.kind} ${a.metadata.name}`.localeCompare(`${b.kind} ${b.metadata.name}`));
}

describe("rendering", () => {
  test.each(cases)("%s is what its golden file says", async (name) => {
    const got = settled(await renderChart(valuesOf(name)));
    const want = join(testdata, name, "want.yaml");
    if (process.env.UPDATE_GOLDEN === "1") {
      writeFileSync(want, got.map((object) => `---\n${stringify(object, { lineWidth: 0 })}`).join(""));
    }
    const golden = parseAllDocuments(readFileSync(want, "utf8")).map(
      (document) => document.toJS() as unknown,
    );
    expect(got).toEqual(golden);
  });

  test("lint finds nothing", async () => {
    for (const name of cases) {
      const args = ["lint", chartDir, "--strict", "--values", valuesOf(name), "--kube-version", "1.34.4"];
      expect(await helm(args)).toContain("0 chart(s) failed");
    }
  });

  test("the made token key is an Ed25519 key, and the ledger's URL carries its password", async () => {
    const objects = await renderChart(valuesOf("default"));
    const data = (name: string, key: string): string => {
      const secret = objects.find((object) => object.kind === "Secret" && object.metadata.name === name);
      return Buffer.from(secret?.data?.[key] ?? "", "base64").toString();
    };
    expect(createPrivateKey(data("slipway-token-key", "ed25519.pem")).asymmetricKeyType).toBe("ed25519");
    expect(data("slipway-ledger", "password")).toMatch(/^[A-Za-z0-9]{32}$/);
    const url = new URL(data("slipway-ledger", "url"));
    expect(url.password).toBe(data("slipway-ledger", "password"));
    expect(url.host).toBe("slipway-ledger:5432");
    const valkey = new URL(data("slipway-valkey", "url"));
    expect(valkey.host).toBe("slipway-valkey:6379");
    expect(valkey.password).toMatch(/^[A-Za-z0-9]{32}$/);
    expect(data("slipway-valkey", "auth.conf")).toBe(`requirepass ${valkey.password}\n`);
  });

  test.each([
    ["an image that is not named", ["images.operator="], /images\.operator: name the operator's image/],
    ["a value that does not exist", ["apiServer.replica=3"], /replica/],
    ["two ledgers", ["ledger.url=postgres://a/b", "ledger.existingSecret.name=c"], /exclude each other/],
    ["a rate limit scale of zero", ["rateLimitScale=0"], /rateLimitScale/],
    ["counting in the memory of two replicas", ["rateLimit.store=memory"], /maximum/],
    [
      "two Valkeys",
      ["rateLimit.valkey.url=valkey://a", "rateLimit.valkey.existingSecret.name=c"],
      /exclude each other/,
    ],
    ["a CIDR that is none", ["networkPolicy.deniedCidrs={10.0.0.0}"], /deniedCidrs/],
  ])("%s is refused", async (_, sets, message) => {
    await expect(renderChart(valuesOf("default"), sets)).rejects.toThrow(message);
  });
});

describe("on a real apiserver", () => {
  let api: TestApiserver;
  const onCluster = (args: string[]): Promise<string> => helm([...args, "--kubeconfig", api.kubeconfig]);
  const kubectl = (args: string[], input?: string): Promise<string> =>
    run(api.binary, ["kubectl", "--kubeconfig", api.kubeconfig, ...args], { input });
  const secrets = async (...others: string[]): Promise<unknown> => {
    const names = ["slipway-ledger", "slipway-token-key", ...others];
    const text = await kubectl(["-n", "slipway-system", "get", "secret", ...names, "-o", "json"]);
    return (JSON.parse(text) as { items: Rendered[] }).items.map((item) => item.data);
  };

  beforeAll(async () => {
    api = await startApiserver();
    await kubectl(["create", "namespace", "slipway-system"]);
    // Every object is checked against the strictest of the Pod Security Standards on the way in.
    const level = "pod-security.kubernetes.io/enforce=restricted";
    await kubectl(["label", "namespace", "slipway-system", level]);
  });
  afterAll(() => api.stop());

  test.each(cases)("the apiserver takes every object of %s", async (name) => {
    const objects = await renderChart(valuesOf(name));
    const answer = await kubectl(
      ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"],
      objects.map((object) => `---\n${stringify(object)}`).join(""),
    );
    expect(answer.trim().split("\n")).toHaveLength(objects.length);
    expect(answer).not.toMatch(/warning/i);
  });

  test("pods pass the restricted Pod Security Standard", async () => {
    const objects = await renderChart(valuesOf("default"));
    const workloads = objects.filter((object) => ["Deployment", "StatefulSet"].includes(object.kind));
    expect(workloads).toHaveLength(4);
    await kubectl(["-n", "slipway-system", "create", "serviceaccount", "default"]);
    for (const { metadata, spec } of workloads) {
      const { template, volumeClaimTemplates = [] } = spec as unknown as WorkloadSpec;
      const { serviceAccountName: _, volumes, ...pod } = template.spec;
      // No controller runs here that would make the token's or the claim's objects: the pod is only admitted.
      const claimed = volumeClaimTemplates.map((claim) => ({ name: claim.metadata.name, emptyDir: {} }));
      const made = { ...pod, automountServiceAccountToken: false, volumes: [...(volumes ?? []), ...claimed] };
      const manifest = { apiVersion: "v1", kind: "Pod", metadata: { ...metadata, labels: {} }, spec: made };
      const answer = await kubectl(["create", "--dry-run=server", "-f", "-"], stringify(manifest));
      expect(answer).toContain("created (server dry run)");
      const privileged = { ...manifest, spec: { ...made, hostNetwork: true } };
      const refused = kubectl(["create", "--dry-run=server", "-f", "-"], stringify(privileged));
      await expect(refused).rejects.toThrow("violates PodSecurity");
    }
  });

  test("an upgrade keeps the password and the key, an uninstall keeps them and the definitions, and a new install takes them up", async () => {
    const values = ["-n", "slipway-system", "--values", valuesOf("stack")];
    await onCluster(["install", "slipway", chartDir, ...values]);
    const made = await secrets();
    const valkey = await secrets("slipway-valkey");
    await onCluster(["upgrade", "slipway", chartDir, ...values, "--set", "rateLimitScale=2"]);
    expect(await secrets()).toEqual(made);
    expect(await secrets("slipway-valkey")).toEqual(valkey);
    await onCluster([
      "upgrade",
      "slipway",
      chartDir,
      ...values,
      "--set",
      "ledger.url=postgres://other/ledger",
    ]);
    await onCluster(["upgrade", "slipway", chartDir, ...values]);
    expect(await secrets()).toEqual(made);

    await onCluster(["uninstall", "slipway", "-n", "slipway-system"]);
    expect(await secrets()).toEqual(made);
    expect(await kubectl(["get", "crd", "projects.slipway.dev", "-o", "name"])).toContain(
      "projects.slipway.dev",
    );
    await onCluster(["install", "slipway", chartDir, ...values]);
    expect(await secrets()).toEqual(made);
  }, 120_000);

  test("an upgrade brings newer definitions", async () => {
    const crd = ["get", "crd", "projects.slipway.dev", "-o", "jsonpath={.spec.names.shortNames}"];
    const before = await kubectl(crd);
    const older = [{ op: "replace", path: "/spec/names/shortNames", value: ["older"] }];
    await kubectl(["patch", "crd", "projects.slipway.dev", "--type=json", "-p", JSON.stringify(older)]);
    await onCluster(["upgrade", "slipway", chartDir, "-n", "slipway-system", "--values", valuesOf("stack")]);
    expect(await kubectl(crd)).toBe(before);
  }, 60_000);
});
