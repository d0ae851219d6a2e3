import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";

export interface TokenKey {
  privateKey: KeyObject;
  publicKey: KeyObject;
}

/**
 * Reads the key that signs user tokens: an Ed25519 private key as PEM (PKCS #8), as
 * `openssl genpkey -algorithm ed25519` and Helm's `genPrivateKey "ed25519"` write it.
 *
 * @throws Error that names the file, never its content
 */
export function readTokenKey(file: string): TokenKey {
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(readFileSync(file));
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
    throw new Error(`SLIPWAY_TOKEN_KEY_FILE ${file} is no PEM private key (${code})`);
  }
  if (privateKey.asymmetricKeyType !== "ed25519") {
    throw new Error(
      `SLIPWAY_TOKEN_KEY_FILE ${file} holds ${privateKey.asymmetricKeyType}, not an Ed25519 key`,
    );
  }
  return { privateKey, publicKey: createPublicKey(privateKey) };
}
