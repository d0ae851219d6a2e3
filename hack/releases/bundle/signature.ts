/**
 * Signatures as `cosign sign-blob` makes them with a key pair: ECDSA over SHA-256, DER in base64. `cosign verify-blob --key cosign.pub
 * --signature SHA256SUMS.sig --insecure-ignore-tlog SHA256SUMS` checks one, and so does `openssl dgst -sha256 -verify`.
 * https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../../lib/steps.ts";
import { BUNDLE } from "./manifest.ts";

const isP256 = (key: KeyObject): boolean => key.asymmetricKeyDetails?.namedCurve === "prime256v1";

/** @throws UserError for a file that has no key to sign with */
export async function checkSigningKey(keyFile: string): Promise<void> {
  await readKey(keyFile, createPrivateKey);
}

/** Signs a bundle's checksums. @param keyFile PEM of a private P-256 key @throws UserError when it is none */
export async function signChecksums(folder: string, keyFile: string): Promise<void> {
  const key = await readKey(keyFile, createPrivateKey);
  const signature = sign("sha256", await readFile(join(folder, BUNDLE.checksums)), key);
  await writeFile(join(folder, BUNDLE.signature), `${signature.toString("base64")}\n`);
}

/** @param keyFile PEM of the release's public key @throws UserError when the bundle is not signed with its private key */
export async function verifySignature(folder: string, keyFile: string): Promise<void> {
  const key = await readKey(keyFile, createPublicKey);
  const text = await readFile(join(folder, BUNDLE.signature), "utf8").catch(() => {
    throw new UserError(`the bundle is not signed: it has no ${BUNDLE.signature}`);
  });
  const checksums = await readFile(join(folder, BUNDLE.checksums));
  if (!verify("sha256", checksums, key, Buffer.from(text, "base64"))) {
    throw new UserError(`${BUNDLE.signature} is not of the key in ${keyFile}`);
  }
}

async function readKey(file: string, parse: (pem: string) => KeyObject): Promise<KeyObject> {
  try {
    const key = parse(await readFile(file, "utf8"));
    if (isP256(key)) {
      return key;
    }
  } catch (error) {
    throw new UserError(`${file} has no key: ${(error as Error).message}`);
  }
  throw new UserError(`${file} has no P-256 key; openssl ecparam -genkey -name prime256v1 makes one`);
}
