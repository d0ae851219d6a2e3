/** X.509 certificates of databases and of the authority that signs them. No I/O. */

import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from "node:crypto";
import { isIP } from "node:net";

const KEY = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNATURE = { name: "ECDSA", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;

/** An authority or a server: certificate and key as PEM. */
export interface Pair {
  certificate: string;
  key: string;
}

/** Years of an authority, days of a server's certificate. */
const AUTHORITY_YEARS = 10;
export const SERVER_DAYS = 180;

/** An hour back, for clocks that differ. */
const BEFORE_MS = 3_600_000;

/** What certificates are made with: loaded for the first one, since it takes 23 MB and most starts of an operator make none. */
async function loadX509() {
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  x509.cryptoProvider.set(webcrypto);
  return x509;
}

/** Creates an authority for the platform's databases. */
export async function makeAuthority(now: Date): Promise<Pair> {
  const x509 = await loadX509();
  const keys = await generate();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: "CN=Slipway databases",
    ...span(now, AUTHORITY_YEARS * 365),
    signingAlgorithm: SIGNATURE,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      // Python from 3.13 on refuses an authority without it.
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString("pem"), key: await exportKey(keys.privateKey) };
}

/** What is read from a server's certificate. */
export interface Issued {
  serial: string;
  notBefore: Date;
  notAfter: Date;
}

/**
 * Creates a server's certificate, signed by an authority.
 * @param names host names, `*.` ones too, and addresses, under which it is reached; the first is its common name
 */
export async function certify(authority: Pair, names: readonly string[], now: Date): Promise<Pair & Issued> {
  const x509 = await loadX509();
  const keys = await generate();
  const issuer = new x509.X509Certificate(authority.certificate);
  const signingKey = await importKey(authority.key);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(),
    // A common name has 64 characters at most, and is ignored where there are other names.
    subject: `CN=${(names[0] ?? "database").slice(0, 64)}`,
    issuer: issuer.subject,
    ...span(now, SERVER_DAYS),
    signingAlgorithm: SIGNATURE,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      // Members of a cluster show each other theirs.
      new x509.ExtendedKeyUsageExtension([
        x509.ExtendedKeyUsage.serverAuth,
        x509.ExtendedKeyUsage.clientAuth,
      ]),
      new x509.SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) ? "ip" : "dns", value })),
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  const { serialNumber, notBefore, notAfter } = certificate;
  return {
    certificate: certificate.toString("pem"),
    key: await exportKey(keys.privateKey),
    serial: serialNumber,
    notBefore,
    notAfter,
  };
}

/** Serial of a certificate, in lower-case hexadecimal digits. @throws Error when it is none */
export function serialOf(pem: string): string {
  return new X509Certificate(pem).serialNumber.toLowerCase();
}

function generate(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(KEY, true, ["sign", "verify"]);
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const bytes = await webcrypto.subtle.exportKey("pkcs8", key);
  return createPrivateKey({ key: Buffer.from(bytes), format: "der", type: "pkcs8" })
    .export({ format: "pem", type: "pkcs8" })
    .toString();
}

function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const bytes = createPrivateKey(pem).export({ format: "der", type: "pkcs8" });
  return webcrypto.subtle.importKey("pkcs8", bytes, KEY, false, ["sign"]);
}

/** 16 random bytes, positive. */
function serial(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString("hex");
}

function span(now: Date, days: number) {
  return {
    notBefore: new Date(now.getTime() - BEFORE_MS),
    notAfter: new Date(now.getTime() + days * DAY_MS),
  };
}
