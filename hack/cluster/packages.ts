import { run, succeeds } from "../lib/exec.ts";
import { UserError } from "../lib/steps.ts";

/** Debian packages that the embedded cluster runs on. */
export const clusterPackages = [
  "containerd",
  "runc",
  "containernetworking-plugins",
  "iptables",
  "nftables",
  "conntrack",
  "iproute2",
  "kmod",
  "mount",
  "xfsprogs",
  "openssl",
  "procps",
  "util-linux",
  "ca-certificates",
];

/** What the contract tests are installed with. */
export const contractPackages = ["python3", "python3-venv"];

/** What the console's tests run it with: the browser, and fonts for it. */
export const browserPackages = ["chromium", "fonts-dejavu-core", "iproute2", "util-linux"];

/** The packages of `wanted` that `dpkg-query -W -f '${Package} ${db:Status-Status}\n'` does not call installed. */
export function missingFrom(report: string, wanted: string[]): string[] {
  const installed = new Set(
    report
      .split("\n")
      .filter((line) => line.endsWith(" installed"))
      .map((line) => line.split(" ")[0]),
  );
  return wanted.filter((name) => !installed.has(name));
}

/**
 * Installs what of these Debian packages is missing; one that is named twice is installed once.
 * @returns the names of those it installed
 * @throws UserError where there is no apt
 */
export async function ensurePackages(wanted: string[], log: string): Promise<string[]> {
  if (!(await succeeds("dpkg-query", ["--version"]))) {
    throw new UserError(`this needs Debian's apt; without it install by hand: ${wanted.join(" ")}`);
  }
  // dpkg-query ends with 1 for an unknown name; its report is right all the same.
  const script = `dpkg-query -W -f '\${Package} \${db:Status-Status}\\n' "$@" 2>/dev/null || true`;
  const names = [...new Set(wanted)];
  const missing = missingFrom(await run("sh", ["-c", script, "packages", ...names]), names);
  if (missing.length === 0) {
    return [];
  }
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  const install = ["install", "-y", "-q", "--no-install-recommends", ...missing];
  if (!(await succeeds("apt-get", install, { env, log }))) {
    await run("apt-get", ["update", "-q"], { env, log });
    await run("apt-get", install, { env, log });
  }
  return missing;
}
