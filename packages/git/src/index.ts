/**
 * Git servers of tenants: clients, deliveries of their hooks, and which build an event starts. `forgejo/` and `github/` have the
 * clients, `net/` the SSRF-safe fetch that they use, and `delivery/` reads hooks. Has no access to the cluster or the ledger.
 */

export {
  type Delivery,
  DeliveryError,
  type GitEvent,
  type Headers,
  isSigned,
  type PushEvent,
  type ReleaseEvent,
  readDelivery,
  signBody,
  type TagEvent,
} from "./delivery/read.ts";
export { GitError, type GitErrorCode, gitErrorCodes, isTransient } from "./errors.ts";
export { ForgejoClient, type ForgejoOptions } from "./forgejo/client.ts";
export { GithubClient, type GithubOptions } from "./github/client.ts";
export type { GithubApp } from "./github/tokens.ts";
export {
  type GithubAppConfig,
  githubAppConfig,
  githubEnvironment,
  mountedGithubApp,
} from "./github/tokens.ts";
export {
  canonicalInstanceUrl,
  hostAndPort,
  INSTANCE_URL_MAX_LENGTH,
  isInCidrs,
  isPublicAddress,
} from "./net/addresses.ts";
export {
  type FetchRequest,
  type FetchResponse,
  isUntrusted,
  queriedAddresses,
  type Resolve,
  SsrfSafeFetch,
  type SsrfSafeFetchOptions,
  ssrfSafeLookup,
  systemResolve,
} from "./net/fetch.ts";
export { allowedHosts } from "./net/settings.ts";
export * from "./provider.ts";
export {
  openRepositoryId,
  type RepositoryIdForm,
  repositoryIdForm,
  sealRepositoryId,
} from "./provider.ts";
export { type GitAccount, GitProviders, type GitProvidersOptions } from "./providers.ts";
export {
  isTagPattern,
  matchesTag,
  TAG_PATTERN_MAX_LENGTH,
  type TriggeredBuild,
  type TriggerMode,
  type TriggerSettings,
  triggeredBy,
  triggerMode,
  type VersionDeploy,
} from "./trigger.ts";
