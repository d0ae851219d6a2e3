/** Valkey: an RDB, as a replica receives one. */

import { credentialKeys } from "@slipway/crds";
import { CA_FILE, type EngineScripts, engineScripts, SCRATCH } from "./engine.ts";

/** Its outgoing connections need a certificate, too: any. */
const TLS = `--tls-cluster yes --tls-ca-cert-file ${CA_FILE} --tls-cert-file /etc/slipway/tls/tls.crt --tls-key-file /etc/slipway/tls/tls.key`;

export const valkeyScripts: EngineScripts = {
  name: "valkey",
  counts: "keys",
  port: 6379,
  ...engineScripts("valkey", {
    load: { FOLDER: "/tmp", OPTIONS: TLS },
    verify: { FOLDER: SCRATCH, OPTIONS: "--maxmemory 0" },
  }),
  host: "VALKEY_HOST",
  credentials: { VALKEY_USER: credentialKeys.username, VALKEYCLI_AUTH: credentialKeys.password },
  // Replicas are made by an account that may do nothing else than that; a copy needs what the operator may.
  dumpCredentials: { VALKEYCLI_AUTH: credentialKeys.superuser },
  variables: {},
  ownCertificate: true,
  inMemory: true,
};
