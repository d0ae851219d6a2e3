import { generateKeyPairSync, randomBytes, X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../lib/exec.ts";

/** Files of a certificate and its private key, PEM. */
export interface KeyPair {
  cert: string;
  key: string;
}

export interface CertificateSpec {
  commonName: string;
  /** Kubernetes reads these as groups. */
  organizations?: string[];
  /** Subject alternative names, as `DNS:name` or `IP:address`. A certificate with some serves TLS. */
  altNames?: string[];
}

const day = 24 * 60 * 60 * 1000;

/** The certificate's own extensions, in openssl's words. */
export function extensions(spec: CertificateSpec): string {
  const usage = spec.altNames?.length ? "serverAuth,clientAuth" : "clientAuth";
  const lines = [
    "basicConstraints=critical,CA:FALSE",
    "keyUsage=critical,digitalSignature,keyEncipherment",
    `extendedKeyUsage=${usage}`,
    "subjectKeyIdentifier=hash",
    "authorityKeyIdentifier=keyid",
  ];
  if (spec.altNames?.length) {
    lines.push(`subjectAltName=${spec.altNames.join(",")}`);
  }
  return `${lines.join("\n")}\n`;
}

/** The certificate's subject, in openssl's words. */
export function subject(spec: CertificateSpec): string {
  const organizations = (spec.organizations ?? []).map((name) => `/O=${name}`).join("");
  return `${organizations}/CN=${spec.commonName}`;
}

function fileNames(dir: string, name: string): KeyPair {
  return { cert: join(dir, `${name}.crt`), key: join(dir, `${name}.key`) };
}

async function writeKey(path: string): Promise<void> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await writeFile(path, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
}

function expiresWithin(path: string, milliseconds: number): boolean {
  return new X509Certificate(readFileSync(path)).validToDate.getTime() < Date.now() + milliseconds;
}

/** A certificate authority kept in `dir`: made once, ten years. */
export async function ensureAuthority(dir: string, name: string): Promise<KeyPair> {
  const files = fileNames(dir, name);
  if (existsSync(files.cert) && existsSync(files.key)) {
    return files;
  }
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeKey(files.key);
  // Without keyUsage, OpenSSL's strict mode (the default from Python 3.13 on) refuses the chain.
  const args = ["req", "-x509", "-new", "-key", files.key, "-out", files.cert, "-days", "3650"];
  args.push("-subj", `/CN=${name}`, "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature");
  await run("openssl", args);
  return files;
}

/**
 * A certificate signed by `authority`, kept in `dir` under `name`. Signed again when its content changes,
 * when the authority is another, or 30 days before its end; the key stays.
 */
export async function ensureCertificate(
  dir: string,
  name: string,
  authority: KeyPair,
  spec: CertificateSpec,
): Promise<KeyPair> {
  const files = fileNames(dir, name);
  const extensionFile = join(dir, `${name}.ext`);
  const wanted = `# ${subject(spec)}\n${extensions(spec)}`;
  const current = existsSync(files.cert) && existsSync(files.key) && existsSync(extensionFile);
  if (current && readFileSync(extensionFile, "utf8") === wanted && !expiresWithin(files.cert, 30 * day)) {
    const issuer = new X509Certificate(readFileSync(authority.cert)).publicKey;
    if (new X509Certificate(readFileSync(files.cert)).verify(issuer)) {
      return files;
    }
  }
  await mkdir(dir, { recursive: true, mode: 0o700 });
  if (!existsSync(files.key)) {
    await writeKey(files.key);
  }
  const request = await run("openssl", ["req", "-new", "-key", files.key, "-subj", subject(spec)]);
  await writeFile(extensionFile, wanted);
  const args = ["x509", "-req", "-CA", authority.cert, "-CAkey", authority.key, "-days", "365"];
  args.push("-set_serial", `0x${randomBytes(15).toString("hex")}`, "-extfile", extensionFile);
  args.push("-out", files.cert);
  await run("openssl", args, { input: request });
  return files;
}

/** The key pair that signs service account tokens. `cert` is the public key. */
export async function ensureSigningKey(dir: string, name: string): Promise<KeyPair> {
  const files: KeyPair = { cert: join(dir, `${name}.pub`), key: join(dir, `${name}.key`) };
  if (existsSync(files.cert) && existsSync(files.key)) {
    return files;
  }
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
  await writeFile(files.key, pair.privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  await writeFile(files.cert, pair.publicKey.export({ type: "spki", format: "pem" }));
  return files;
}
