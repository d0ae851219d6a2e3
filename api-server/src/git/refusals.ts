import { GitError } from "@slipway/git";
import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";

/** What went wrong with a credential or an address that was just sent: 400 with the field that is to be changed. */
export function sentInVain(error: unknown): unknown {
  if (!(error instanceof GitError)) {
    return error;
  }
  const { message } = error;
  switch (error.code) {
    case "InstanceUrlInvalid":
      return field("instance_url", "GIT_INSTANCE_URL_INVALID", error);
    case "AddressRefused":
      return field("instance_url", "GIT_ADDRESS_REFUSED", error);
    case "CertificateUntrusted":
      return field("instance_url", "GIT_CERTIFICATE_UNTRUSTED", error);
    case "CredentialRefused":
      return field("token", "GIT_CREDENTIAL_REFUSED", error);
    case "PermissionLacking":
      return field("token", "GIT_PERMISSION_LACKING", error);
    case "RepositoryNotFound":
      return field("repository_path", "GIT_REPOSITORY_NOT_FOUND", error);
    default:
      return general(error, message);
  }
}

/** What went wrong with a connection that there is. */
export function unusable(error: unknown): unknown {
  if (!(error instanceof GitError)) {
    return error;
  }
  switch (error.code) {
    case "RepositoryNotFound":
      return failures.gitRepositoryNotFound();
    case "RefNotFound":
      return failures.gitRefNotFound();
    case "CursorInvalid":
      return field("cursor", "GIT_CURSOR_INVALID", error);
    case "ProviderUnavailable":
    case "CapabilityUnavailable":
      return general(error, error.message);
    default:
      return failures.gitConnectionUnavailable(error.message);
  }
}

function general(error: GitError, message: string): Failure {
  return error.code === "CapabilityUnavailable"
    ? failures.gitCapabilityUnavailable(message)
    : failures.gitProviderUnavailable(message, error);
}

const field = (name: string, code: string, { message }: GitError): Failure =>
  failures.validation([{ field: name, message, code }]);
