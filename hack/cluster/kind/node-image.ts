import { chmod, copyFile, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { ImageRecipe, Layer } from "../../images/build.ts";
import { debianLayer } from "../../images/debian.ts";
import { hashFiles, listFiles, packTar, writeFiles } from "../../images/files.ts";
import { archiveImage, type BuiltImage, buildImage } from "../../images/index.ts";
import { run } from "../../lib/exec.ts";
import { contentHash } from "../../lib/hash.ts";
import { root } from "../../lib/paths.ts";
import { addonImage } from "../addon-images.ts";
import { binaryPath, ensureBinary } from "../binaries.ts";
import { containerdConfig } from "../containerd.ts";
import { type BinaryName, kubernetesVersion } from "../programs.ts";
import { suite, systemLayer, without } from "./node-system.ts";

const sources = join(root, "hack/cluster/kind/node");
const addons = join(root, "hack/cluster/addons");

/** What the node has beside Debian's packages and the container images, by path. */
const nodeBinaries: readonly BinaryName[] = ["kubeadm", "netpol", "volumes"];
const components = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd"];

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * The image of kind's nodes, made without a registry: Debian with systemd, containerd and network plugins, Kubernetes from the same
 * Go module as the embedded cluster's, and the control plane's images in an archive each, which a node imports when it first starts.
 * It keeps what kind expects of a node's image: `/kind/version`, `/kind/manifests`, kubeadm, kubectl and ctr in the path.
 */
export function kindNode(): ImageRecipe {
  return {
    name: "slipway/kind-node",
    version: kubernetesVersion,
    layers: [systemLayer(), programsLayer(), imagesLayer(), filesLayer()],
    config: {
      entrypoint: ["/usr/local/bin/entrypoint", "/sbin/init"],
      env: { PATH, container: "podman" },
      user: "0:0",
      // What systemd ends on.
      stopSignal: "SIGRTMIN+3",
    },
  };
}

/** Builds the node's image, or finds it in the image cache. */
export const buildKindNode = (): Promise<BuiltImage> => buildImage(kindNode());

const hashOf = (name: BinaryName): string => basename(dirname(binaryPath(name)));

function programsLayer(): Layer {
  return {
    name: "kind-programs",
    key: async () =>
      contentHash(["kind-programs", "1", ...["kubernetes" as const, ...nodeBinaries].map(hashOf)]),
    write: async (tar, scratch) => {
      const bin = join(scratch, "root/usr/bin");
      await mkdir(bin, { recursive: true });
      await copyFile(await ensureBinary("kubernetes"), join(bin, "kubelet"));
      await symlink("kubelet", join(bin, "kubectl"));
      for (const name of nodeBinaries) {
        await copyFile(await ensureBinary(name), join(bin, name));
      }
      await packTar(join(scratch, "root"), tar);
    },
  };
}

/** The control plane's image: all of it is one program, which runs as what it is called. */
function controlPlane(): ImageRecipe {
  return {
    name: "slipway/kubernetes",
    version: kubernetesVersion,
    layers: [
      debianLayer({
        name: "kube-proxy-tools",
        suite,
        // What kube-proxy runs, and the time zones of CronJobs, which upstream's programs have built in.
        packages: ["nftables", "kmod", "libc-bin", "tzdata"],
        without,
        revision: "1",
      }),
      {
        name: "kubernetes",
        key: async () => contentHash(["kubernetes-image", "1", hashOf("kubernetes")]),
        write: async (tar, scratch) => {
          const bin = join(scratch, "root/usr/local/bin");
          await mkdir(bin, { recursive: true });
          await copyFile(await ensureBinary("kubernetes"), join(bin, "kubernetes"));
          for (const name of components) {
            await symlink("kubernetes", join(bin, name));
          }
          await packTar(join(scratch, "root"), tar);
        },
      },
    ],
    config: { env: { PATH }, user: "0:0" },
  };
}

/** Which of the node's images each of the references that kubeadm prints is; throws for one that none of them is. */
export function imageOf(reference: string): "kubernetes" | "coredns" | "pause" {
  const name =
    reference
      .replace(/:[^:/]+$/, "")
      .split("/")
      .at(-1) ?? "";
  if (components.includes(name)) {
    return "kubernetes";
  }
  if (name === "coredns" || name === "pause") {
    return name;
  }
  throw new Error(`kubeadm wants ${reference}, which the node's image does not have`);
}

/** References of the images that kubeadm of this version uses. */
async function wantedImages(): Promise<string[]> {
  const args = ["config", "images", "list", "--kubernetes-version", kubernetesVersion];
  return (await run(await ensureBinary("kubeadm"), args)).trim().split("\n");
}

function imagesLayer(): Layer {
  return {
    name: "kind-images",
    key: async () =>
      contentHash([
        "kind-images",
        "1",
        hashOf("kubeadm"),
        ...(await Promise.all([buildImage(controlPlane()), addonImage("coredns"), addonImage("pause")])).map(
          ({ reference }) => reference,
        ),
      ]),
    write: async (tar, scratch) => {
      const folder = join(scratch, "root/kind/images");
      await mkdir(folder, { recursive: true });
      const images = {
        kubernetes: await buildImage(controlPlane()),
        coredns: await addonImage("coredns"),
        pause: await addonImage("pause"),
      };
      for (const [name, image] of Object.entries(images)) {
        await archiveImage(image, join(folder, `${name}.tar`));
        await writeFile(join(folder, `${name}.reference`), `${image.reference}\n`);
      }
      const names = (await wantedImages()).map((name) => `${images[imageOf(name)].reference} ${name}\n`);
      await writeFile(join(folder, "names"), names.join(""));
      await packTar(join(scratch, "root"), tar);
    },
  };
}

/** Bridge of each node, with addresses from the node's own part of the pods' network; host ports by portmap. */
export function nodeCni(): string {
  const config = {
    cniVersion: "1.0.0",
    name: "slipway",
    plugins: [
      {
        type: "bridge",
        bridge: "slipway0",
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          ranges: [[{ subnet: "POD_CIDR" }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true }, snat: true },
    ],
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

/** Manifests of addons with the node's own account in place of the embedded cluster's. */
async function forNodes(files: string[]): Promise<string> {
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
  return texts.join("---\n").replaceAll(/kind: User, name: slipway-\w+/g, "kind: Group, name: system:nodes");
}

async function files(): Promise<Record<string, string>> {
  const pause = (await wantedImages()).find((reference) => imageOf(reference) === "pause");
  return {
    "kind/version": kubernetesVersion,
    "kind/cni.json": nodeCni(),
    "kind/manifests/default-cni.yaml": await forNodes([
      join(sources, "rbac.yaml"),
      join(addons, "netpol.yaml"),
    ]),
    "kind/manifests/default-storage.yaml": await forNodes([join(addons, "volumes.yaml")]),
    "etc/crictl.yaml": "runtime-endpoint: unix:///run/containerd/containerd.sock\n",
    "etc/containerd/config.toml": containerdConfig({
      root: "/var/lib/containerd",
      state: "/run/containerd",
      socket: "/run/containerd/containerd.sock",
      cniConfDir: "/etc/cni/net.d",
      registryConfigDir: "/etc/containerd/certs.d",
      sandboxImage: pause ?? "",
    }),
  };
}

const enabled = [
  "containerd",
  "slipway-images",
  "kubelet",
  "slipway-netpol",
  "slipway-network",
  "slipway-volumes",
];

function filesLayer(): Layer {
  return {
    name: "kind-files",
    key: async () =>
      contentHash([
        "kind-files",
        "1",
        JSON.stringify(await files()),
        await hashFiles(sources, await listFiles(sources, () => true)),
      ]),
    write: async (tar, scratch) => {
      const folder = join(scratch, "root");
      await writeFiles(folder, await files());
      for (const path of ["etc/kubernetes/manifests", "etc/cni/net.d", "kind/bin", "usr/local/bin"]) {
        await mkdir(join(folder, path), { recursive: true });
      }
      const units = join(folder, "etc/systemd/system");
      await mkdir(join(units, "multi-user.target.wants"), { recursive: true });
      for (const path of await listFiles(sources, () => true)) {
        const name = basename(path);
        if (name.endsWith(".service")) {
          await copyFile(join(sources, path), join(units, name));
        } else if (name.endsWith(".sh")) {
          const program = name.slice(0, -".sh".length);
          const to = join(folder, program === "entrypoint" ? "usr/local/bin" : "kind/bin", program);
          await copyFile(join(sources, path), to);
          await chmod(to, 0o755);
        }
      }
      for (const name of enabled) {
        await symlink(`../${name}.service`, join(units, `multi-user.target.wants/${name}.service`));
      }
      await packTar(folder, tar);
    },
  };
}
