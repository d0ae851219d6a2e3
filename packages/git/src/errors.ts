/** What can go wrong with a Git server. The codes are stable: callers branch on them. */
export const gitErrorCodes = [
  /** The instance's address is no canonical HTTPS address. */
  "InstanceUrlInvalid",
  /** The address is private, or otherwise none that the platform connects to. */
  "AddressRefused",
  /** Nobody trusted vouches for the server's certificate. */
  "CertificateUntrusted",
  /** The server cannot be reached, does not answer in time, is overloaded or answers what nobody understands. */
  "ProviderUnavailable",
  /** The server does not take the credential. */
  "CredentialRefused",
  /** It takes the credential, which may not do this. */
  "PermissionLacking",
  /** There is no such repository, or the credential does not see it. */
  "RepositoryNotFound",
  /** There is no such branch, tag or commit. */
  "RefNotFound",
  /** The connection cannot do this at all. */
  "CapabilityUnavailable",
  /** A cursor that was not given out. */
  "CursorInvalid",
] as const;
export type GitErrorCode = (typeof gitErrorCodes)[number];

/** A failure of a Git server, or of a request to one. The message is for people and holds no secret. */
export class GitError extends Error {
  override readonly name = "GitError";
  readonly code: GitErrorCode;

  constructor(code: GitErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.code = code;
  }
}

/** Whether a retry may succeed without a change. */
export function isTransient(error: unknown): boolean {
  return error instanceof GitError && error.code === "ProviderUnavailable";
}
