import { GitError, isUntrusted } from "@slipway/git";
import { addressRefused } from "./address.ts";
import { DeliveryError } from "./receiver.ts";

/** The failure of a connection. Pure. */
export function connectionFailure(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) {
    return error;
  }
  if (error instanceof GitError && error.code === "AddressRefused") {
    return addressRefused(error);
  }
  const { name, code: known } = error as { name: string; code?: unknown };
  // That of an aborted call is a number.
  const code = typeof known === "string" ? known : "";
  if (isUntrusted(code) || code.startsWith("ERR_SSL_")) {
    return new DeliveryError("CertificateUntrusted", `no connection over TLS is made (${code})`, {
      cause: error,
    });
  }
  return new DeliveryError("ReceiverUnavailable", messageOf(code, name), { cause: error });
}

function messageOf(code: string, name: string): string {
  if (name === "TimeoutError" || name === "AbortError" || code === "ETIMEDOUT") {
    return "the receiver does not answer in time";
  }
  return code === "ENOTFOUND" || code.startsWith("EAI_")
    ? "the receiver's name cannot be resolved"
    : "the receiver cannot be reached";
}
