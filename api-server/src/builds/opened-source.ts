import type { GitConnection } from "@slipway/crds";
import type { GitProvider } from "@slipway/git";
import type { Services } from "../services.ts";

export type SourceServices = Pick<Services, "kube" | "git" | "now">;

/** A project's source at its Git server. */
export interface OpenedSource {
  connection: GitConnection;
  /** The server's own id. */
  repositoryId: string;
  /** `owner/name`, of the legacy kind. */
  path?: string;
  /** Calls the server. @throws Failure 404, 409, 503 */
  call<T>(request: (server: GitProvider, repositoryId: string) => Promise<T>): Promise<T>;
}
