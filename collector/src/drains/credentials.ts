import { createSecureContext } from "node:tls";
import {
  CLIENT_CERTIFICATE_KEY,
  CLIENT_KEY_KEY,
  DRAIN_HEADERS_MAX,
  HEADER_KEY_PREFIX,
  isDrainHeader,
  isDrainHeaderValue,
  type LogDrainSpec,
} from "@slipway/crds";
import { DeliveryError } from "./receiver.ts";

/** What the platform identifies itself with to a receiver, and whom it trusts. */
export interface Credentials {
  headers: Readonly<Record<string, string>>;
  tls: { ca?: string; cert?: string; key?: string };
}

/** A Secret's data, as the apiserver has it: base64. */
export type SecretData = Readonly<Record<string, string>>;

/**
 * The credentials of a drain. Keys of the Secret that are none of a drain's are left out.
 * @param data undefined of a drain that names no Secret
 * @throws DeliveryError SecretInvalid, which names keys and no values
 */
export function credentialsOf({ ca, otlpHttp }: LogDrainSpec, data: SecretData | undefined): Credentials {
  const values = Object.entries(data ?? {}).map(
    ([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")] as const,
  );
  const headers: Record<string, string> = {};
  for (const [key, value] of values) {
    if (otlpHttp === undefined || !key.startsWith(HEADER_KEY_PREFIX)) {
      continue;
    }
    const name = key.slice(HEADER_KEY_PREFIX.length);
    if (!isDrainHeader(name) || !isDrainHeaderValue(value.trimEnd())) {
      throw new DeliveryError(
        "SecretInvalid",
        `the key ${key} of the Secret is no header that a drain may have`,
      );
    }
    headers[name] = value.trimEnd();
  }
  if (Object.keys(headers).length > DRAIN_HEADERS_MAX) {
    throw new DeliveryError("SecretInvalid", `the Secret has more than ${DRAIN_HEADERS_MAX} headers`);
  }
  const ofKey = new Map(values);
  const [cert, key] = [ofKey.get(CLIENT_CERTIFICATE_KEY), ofKey.get(CLIENT_KEY_KEY)];
  if ((cert === undefined) !== (key === undefined)) {
    throw new DeliveryError(
      "SecretInvalid",
      `the Secret has only one of ${CLIENT_CERTIFICATE_KEY} and ${CLIENT_KEY_KEY}`,
    );
  }
  const tls = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert, key: key as string }),
  };
  try {
    createSecureContext(tls);
  } catch {
    throw new DeliveryError("SecretInvalid", "the certificates or the key cannot be read");
  }
  return { headers, tls };
}
