import { chmod, copyFile, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { ImageRecipe, Layer } from "../../images/build.ts";
import { debianLayer } from "../../images/debian.ts";
import { caBundle, hashFiles, listFiles, packTar, writeFiles } from "../../images/files.ts";
import { archiveImage, type BuiltImage, buildImage } from "../../images/index.ts";
import { run } from "../../lib/exec.ts";
import { contentHash } from "../../lib/hash.ts";
import { root } from "../../lib/paths.ts";
import { addonImage } from "../addon-images.ts";
import { binaryPath, ensureBinary } from "../binaries.ts";
import { containerdConfig } from "../containerd.ts";
import { type BinaryName, kubernetesVersion } from "../programs.ts";

const sources = join(root, "hack/cluster/kind/node");
const addons = join(root, "hack/cluster/addons");

/** Its systemd, containerd and runc are known to run on control groups of both versions. */
const suite = "bookworm";

const nodePackages = [
  "base-files",
  "base-passwd",
  "bash",
  "ca-certificates",
  "conntrack",
  "containerd",
  "containernetworking-plugins",
  "coreutils",
  "dash",
  "findutils",
  "grep",
  "gzip",
  "hostname",
  "iproute2",
  "iptables",
  "kmod",
  "libc-bin",
  "mawk",
  "mount",
  "nftables",
  "procps",
  "runc",
  "sed",
  "systemd",
  "systemd-sysv",
  "tar",
  "util-linux",
  "xfsprogs",
];

/** What only installation scripts need, or parts of the packages that a node does not use. */
const without =
  /^(debconf|dpkg|perl.*|libperl.*|python3.*|libpython3.*|media-types|libsqlite3-0|openssl|gcc-.*-base|usrmerge|lib(number|text|file)-.*-perl|init-system-helpers|debianutils|readline-common|libgdbm.*|libdb5.3)$/;

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

function systemLayer(): Layer {
  return debianLayer({
    name: "kind-system",
    suite,
    packages: nodePackages,
    without,
    revision: "1",
    finish: async (folder) => {
      for (const name of ["passwd", "group"]) {
        await copyFile(join(folder, `usr/share/base-passwd/${name}.master`), join(folder, `etc/${name}`));
      }
      await writeFiles(folder, {
        "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        "etc/ssl/certs/ca-certificates.crt": await caBundle(folder),
        "etc/systemd/journald.conf": "[Journal]\nStorage=volatile\nReadKMsg=no\n",
      });
      await linkAlternatives(folder);
      await keepServicesOut(folder);
    },
  });
}

/** What installation scripts would link. */
async function linkAlternatives(folder: string): Promise<void> {
  const links: [string, string][] = [
    ["usr/bin/sh", "dash"],
    ["usr/bin/awk", "mawk"],
    ...["iptables", "iptables-save", "iptables-restore"].map((name): [string, string] => [
      `usr/sbin/${name}`,
      "xtables-nft-multi",
    ]),
  ];
  for (const [link, target] of links) {
    await rm(join(folder, link), { force: true });
    await symlink(target, join(folder, link));
  }
}

/** A node's devices, logins and file systems are those of the machine: what systemd would start for them is left out. */
async function keepServicesOut(folder: string): Promise<void> {
  const units = join(folder, "usr/lib/systemd/system");
  for (const target of ["multi-user", "local-fs", "basic", "timers"]) {
    await rm(join(units, `${target}.target.wants`), { recursive: true, force: true });
  }
  const own = join(folder, "etc/systemd/system");
  await mkdir(own, { recursive: true });
  const masked = [
    "systemd-udevd.service",
    "systemd-udevd-kernel.socket",
    "systemd-udevd-control.socket",
    "systemd-udev-trigger.service",
    "systemd-binfmt.service",
    "proc-sys-fs-binfmt_misc.automount",
    "systemd-firstboot.service",
    "systemd-logind.service",
    "systemd-initctl.socket",
    "getty.target",
    "console-getty.service",
    "systemd-modules-load.service",
    // It would empty /run of what the engine has put there.
    "systemd-tmpfiles-clean.timer",
  ];
  for (const unit of masked) {
    await symlink("/dev/null", join(own, unit));
  }
  await symlink("/usr/lib/systemd/system/multi-user.target", join(own, "default.target"));
}

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
