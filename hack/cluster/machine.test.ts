import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ensureAuthority, ensureCertificate } from "./certificates.ts";
import { withoutClusterRules } from "./network.ts";
import { missingFrom } from "./packages.ts";
import { goIsRecent } from "./preflight.ts";
import { parseStartTime } from "./processes.ts";
import { mountsBelow } from "./teardown.ts";

const dir = mkdtempSync(join(tmpdir(), "slipway-pki-"));
afterAll(() => rmSync(dir, { recursive: true }));

test("a process is identified by its start time, whatever its name; a zombie is none", () => {
  const rest = Array.from({ length: 30 }, (_, index) => String(index + 4)).join(" ");
  expect(parseStartTime(`12 (a (b) c) S ${rest}`)).toBe("22");
  expect(parseStartTime(`12 (dead) Z ${rest}`)).toBeUndefined();
  expect(parseStartTime(`self ${process.pid}`)).toBeUndefined();
});

test("packages that are half installed or unknown are missing", () => {
  const report = "runc installed\nbuildah config-files\n";
  expect(missingFrom(report, ["runc", "buildah", "nftables"])).toEqual(["buildah", "nftables"]);
});

test.each([
  ["go version go1.24.0 linux/amd64", true],
  ["go version go1.26.8 linux/amd64", true],
  ["go version go1.23.9 linux/amd64", false],
  ["no go at all", false],
])("%s", (report, recent) => {
  expect(goIsRecent(report)).toBe(recent);
});

test("mounts below a folder come deepest first, with their spaces", () => {
  const mounts =
    "/dev/vda / ext4 rw 0 0\ntmpfs /s/a tmpfs rw 0 0\ntmpfs /s/a/b\\040c tmpfs rw 0 0\ntmpfs /sx/a tmpfs rw 0 0\n";
  expect(mountsBelow(mounts, "/s")).toEqual(["/s/a/b c", "/s/a"]);
});

test("of the machine's packet rules only the cluster's go", () => {
  const saved =
    "*nat\n:DOCKER - [0:0]\n:CNI-abc - [0:0]\n-A PREROUTING -j CNI-HOSTPORT-DNAT\n-A POSTROUTING -j MINE\n:KUBE-MARK - [0:0]\nCOMMIT\n";
  expect(withoutClusterRules(saved)).toBe("*nat\n:DOCKER - [0:0]\n-A POSTROUTING -j MINE\nCOMMIT\n");
});

test("a certificate is kept while its content is the requested one, and signed again when that changes", async () => {
  const authority = await ensureAuthority(dir, "ca");
  const wanted = { commonName: "node", organizations: ["system:nodes"], altNames: ["IP:10.244.0.1"] };
  const first = await ensureCertificate(dir, "node", authority, wanted);
  const signed = statSync(first.cert).mtimeMs;
  await ensureCertificate(dir, "node", authority, wanted);
  expect(statSync(first.cert).mtimeMs).toBe(signed);
  const again = await ensureCertificate(dir, "node", authority, { ...wanted, altNames: ["IP:10.244.0.2"] });
  const text = execFileSync("openssl", ["x509", "-in", again.cert, "-noout", "-text"], { encoding: "utf8" });
  expect(text).toContain("IP Address:10.244.0.2");
  expect(text).toContain("O = system:nodes, CN = node");
  expect(statSync(again.key).mode & 0o777).toBe(0o600);
});

test("strict verification accepts the chain: the authority's key may sign certificates", async () => {
  const authority = await ensureAuthority(dir, "ca");
  const leaf = await ensureCertificate(dir, "strict", authority, {
    commonName: "s",
    altNames: ["DNS:localhost"],
  });
  const args = ["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", authority.cert, leaf.cert];
  expect(execFileSync("openssl", args, { encoding: "utf8" })).toContain("OK");
});

test("another authority's certificate is signed again", async () => {
  const other = await ensureAuthority(join(dir, "other"), "ca");
  const leaf = await ensureCertificate(dir, "strict", other, {
    commonName: "s",
    altNames: ["DNS:localhost"],
  });
  const args = ["verify", "-CAfile", other.cert, leaf.cert];
  expect(execFileSync("openssl", args, { encoding: "utf8" })).toContain("OK");
});
