import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "../../lib/exec.ts";
import { signChecksums, verifySignature } from "./signature.ts";

async function keyPair(folder: string, name: string) {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const files = { own: join(folder, `${name}.key`), public: join(folder, `${name}.pub`) };
  await writeFile(files.own, privateKey.export({ type: "pkcs8", format: "pem" }));
  await writeFile(files.public, publicKey.export({ type: "spki", format: "pem" }));
  return files;
}

async function signed() {
  const keys = await mkdtemp(join(tmpdir(), "keys-"));
  const folder = await mkdtemp(join(tmpdir(), "bundle-"));
  await writeFile(join(folder, "SHA256SUMS"), "the sums\n");
  const key = await keyPair(keys, "release");
  await signChecksums(folder, key.own);
  return { keys, folder, key };
}

test("a signature is of its key alone, and of these checksums alone", async () => {
  const { keys, folder, key } = await signed();
  await expect(verifySignature(folder, key.public)).resolves.toBeUndefined();

  const other = await keyPair(keys, "other");
  await expect(verifySignature(folder, other.public)).rejects.toThrow("SHA256SUMS.sig is not of the key in");

  await writeFile(join(folder, "SHA256SUMS"), "other sums\n");
  await expect(verifySignature(folder, key.public)).rejects.toThrow("SHA256SUMS.sig is not of the key in");
});

test("openssl verifies it, as cosign does", async () => {
  const { folder, key } = await signed();
  const der = join(folder, "der");
  await run("openssl", ["base64", "-d", "-A", "-in", join(folder, "SHA256SUMS.sig"), "-out", der]);
  const verify = ["dgst", "-sha256", "-verify", key.public, "-signature", der, join(folder, "SHA256SUMS")];
  await expect(run("openssl", verify)).resolves.toContain("Verified OK");
});

test("a bundle without a signature is refused where a key is named, and so is a file without a fitting key", async () => {
  const { keys, key } = await signed();
  const unsigned = await mkdtemp(join(tmpdir(), "bundle-"));
  await expect(verifySignature(unsigned, key.public)).rejects.toThrow("the bundle is not signed");

  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const rsa = join(keys, "rsa.pub");
  await writeFile(rsa, publicKey.export({ type: "spki", format: "pem" }));
  await expect(verifySignature(unsigned, rsa)).rejects.toThrow("has no P-256 key");
  await expect(verifySignature(unsigned, join(keys, "none"))).rejects.toThrow("has no key");
});
