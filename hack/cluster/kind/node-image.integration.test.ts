import { existsSync } from "node:fs";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { inside } from "../../images/inside.ts";
import { kubernetesVersion } from "../programs.ts";
import { buildKindNode } from "./node-image.ts";

/** The image may have to be built, and the programs in it. */
const BUILD_MS = 600_000;

let files: Awaited<ReturnType<typeof inside>>;
const text = (path: string): Promise<string> => readFile(join(files.root, path), "utf8");

async function runs(...command: string[]): Promise<string> {
  const process = files.run(command, { uid: 0, env: { PATH: "/usr/sbin:/usr/bin" } });
  expect(await process.exited, process.output()).toBe(0);
  return process.output();
}

beforeAll(async () => {
  files = await inside(await buildKindNode());
}, BUILD_MS);
afterAll(() => files?.close());

test("programs that kind and the kubelet call start, of the same Kubernetes", async () => {
  expect(await text("kind/version")).toBe(kubernetesVersion);
  expect(await runs("kubelet", "--version")).toContain(kubernetesVersion);
  expect(await runs("kubectl", "version", "--client")).toContain(kubernetesVersion);
  expect(await runs("kubeadm", "version", "-o", "short")).toContain(kubernetesVersion);
  for (const command of [
    ["containerd", "--version"],
    ["ctr", "--version"],
    ["runc", "--version"],
    ["nft", "--version"],
    ["iptables", "--version"],
    ["mkfs.xfs", "-V"],
    ["findmnt", "--version"],
    ["systemctl", "--version"],
  ]) {
    await runs(...command);
  }
});

test("systemd starts what a node is, and nothing of a machine's", async () => {
  const units = "etc/systemd/system/multi-user.target.wants";
  expect((await readdir(join(files.root, units))).sort()).toEqual([
    "containerd.service",
    "kubelet.service",
    "slipway-images.service",
    "slipway-netpol.service",
    "slipway-network.service",
    "slipway-volumes.service",
  ]);
  for (const unit of await readdir(join(files.root, units))) {
    const [, program = ""] = /^ExecStart=(\S+)/m.exec(await text(`etc/systemd/system/${unit}`)) ?? [];
    expect((await lstat(join(files.root, program))).mode & 0o111, program).toBeGreaterThan(0);
  }
  expect(existsSync(join(files.root, "usr/lib/systemd/system/multi-user.target.wants"))).toBe(false);
});

test("each image that kubeadm names is in an archive", async () => {
  const names = (await text("kind/images/names")).trim().split("\n");
  expect(names.length).toBeGreaterThan(6);
  const own = await Promise.all(
    (await readdir(join(files.root, "kind/images")))
      .filter((name) => name.endsWith(".tar"))
      .map((name) => text(`kind/images/${name.replace(".tar", ".reference")}`)),
  );
  const references = own.map((reference) => reference.trim());
  for (const line of names) {
    expect(references).toContain(line.split(" ")[0]);
  }
  expect(await text("etc/containerd/config.toml")).toContain(
    `sandbox_image = "${names.find((line) => line.includes("/pause:"))?.split(" ")[1]}"`,
  );
});

test("the manifests that kind applies give the node's programs their rights", async () => {
  for (const name of ["default-cni", "default-storage"]) {
    const documents = parseAllDocuments(await text(`kind/manifests/${name}.yaml`)).map((one) => one.toJS());
    const bindings = documents.filter(({ kind }) => kind === "ClusterRoleBinding");
    expect(bindings.length).toBeGreaterThan(0);
    for (const { subjects } of bindings) {
      expect(subjects).toEqual([
        { kind: "Group", name: "system:nodes", apiGroup: "rbac.authorization.k8s.io" },
      ]);
    }
  }
});
