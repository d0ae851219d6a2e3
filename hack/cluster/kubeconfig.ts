import { readFileSync } from "node:fs";
import { stringify } from "yaml";
import { writeFileAtomic } from "../lib/files.ts";
import type { KeyPair } from "./certificates.ts";

const base64 = (file: string) => readFileSync(file).toString("base64");

/** A kubeconfig with one cluster and one user, certificates embedded, so that it can be moved. */
export function renderKubeconfig(name: string, server: string, authority: string, client: KeyPair): string {
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, "certificate-authority-data": base64(authority) } }],
    users: [
      {
        name,
        user: { "client-certificate-data": base64(client.cert), "client-key-data": base64(client.key) },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  });
}

/** Writes a kubeconfig, mode 0600, in one step. */
export async function writeKubeconfig(
  path: string,
  name: string,
  server: string,
  authority: string,
  client: KeyPair,
): Promise<void> {
  await writeFileAtomic(path, renderKubeconfig(name, server, authority, client));
}
