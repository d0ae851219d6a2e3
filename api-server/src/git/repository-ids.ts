import { createHmac, hkdfSync } from "node:crypto";
import type { ProjectSpec } from "@slipway/crds";
import {
  GitError,
  openRepositoryId,
  type RepositoryIdForm,
  repositoryIdForm,
  sealRepositoryId,
} from "@slipway/git";
import type { TokenKey } from "../auth/credentials.ts";

type Source = NonNullable<ProjectSpec["source"]>;
type Place = Pick<Source, "connectionId" | "repositoryId">;

/** Opens for no connection. */
const UNKNOWN = "";

/**
 * Ids of repositories in `/v1`: sealed with a key, so that a client has only those of repositories that its
 * connection can read, and cannot enumerate a server's. Specs keep ids without the key, which operators open.
 */
export class RepositoryIds {
  /** The sealed id of a Git server's repository within the connection. */
  readonly seal: RepositoryIdForm["seal"];
  /** The Git server's own id. @throws GitError RepositoryNotFound when it was not given out for the connection */
  readonly open: RepositoryIdForm["open"];

  /** The key is derived from the one that signs tokens: with another one, clients list their repositories again. */
  constructor({ privateKey }: Pick<TokenKey, "privateKey">) {
    const secret = privateKey.export({ type: "pkcs8", format: "der" });
    const key = new Uint8Array(hkdfSync("sha256", secret, "", "slipway repository ids", 32));
    const digest = (text: string) => createHmac("sha256", key).update(text).digest("hex").slice(0, 32);
    ({ seal: this.seal, open: this.open } = repositoryIdForm(digest));
  }

  /** A spec's id as clients see it; one that opens nothing as it is. */
  shown({ connectionId, repositoryId }: Place): string {
    return orElse(repositoryId, () => this.seal(connectionId, openRepositoryId(connectionId, repositoryId)));
  }

  /**
   * A source that a client sent as its spec keeps it. The id in the project's own spec may be sent back as kubectl shows it; any
   * other that was not given out opens nothing from here on.
   */
  kept<Sent extends Place>(sent: Sent, own?: Place): Sent {
    const { connectionId, repositoryId } = sent;
    if (own?.connectionId === connectionId && own.repositoryId === repositoryId) {
      return sent;
    }
    const open = () => sealRepositoryId(connectionId, this.open(connectionId, repositoryId));
    return { ...sent, repositoryId: orElse(UNKNOWN, open) };
  }
}

function orElse(fallback: string, open: () => string): string {
  try {
    return open();
  } catch (error) {
    if (error instanceof GitError) {
      return fallback;
    }
    throw error;
  }
}
