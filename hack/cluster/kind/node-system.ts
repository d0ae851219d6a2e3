/** The lowest layer of kind's nodes. */
import { copyFile, mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { Layer } from "../../images/build.ts";
import { debianLayer } from "../../images/debian.ts";
import { caBundle, writeFiles } from "../../images/files.ts";

/** Its systemd, containerd and runc are known to run on control groups of both versions. */
export const suite = "bookworm";

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
export const without =
  /^(debconf|dpkg|perl.*|libperl.*|python3.*|libpython3.*|media-types|libsqlite3-0|openssl|gcc-.*-base|usrmerge|lib(number|text|file)-.*-perl|init-system-helpers|debianutils|readline-common|libgdbm.*|libdb5.3)$/;

/** Debian with systemd, containerd and network plugins, as installation scripts would leave it. */
export function systemLayer(): Layer {
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
