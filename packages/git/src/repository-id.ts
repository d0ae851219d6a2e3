/** Ids of repositories: opaque, and good for one connection only. */

import { createHash, timingSafeEqual } from "node:crypto";
import { GitError } from "./errors.ts";

export interface RepositoryIdForm {
  /** What stands for the provider's repository within the connection. */
  seal(connectionId: string, id: string): string;
  /** The provider's own id. @throws GitError RepositoryNotFound when it was not sealed so for the connection */
  open(connectionId: string, sealed: string): string;
}

/** Ids that end in what `digest` makes of their connection and repository: lower-case letters and digits. Pure. */
export function repositoryIdForm(digest: (text: string) => string): RepositoryIdForm {
  const seal = (connectionId: string, id: string): string =>
    `r${Buffer.from(id).toString("base64url")}-${digest(JSON.stringify([connectionId, id]))}`;
  return {
    seal,
    open(connectionId, sealed) {
      const encoded = /^r([A-Za-z0-9_-]{1,64})-[0-9a-z]+$/.exec(sealed)?.[1] ?? "";
      const id = Buffer.from(encoded, "base64url").toString();
      if (!/^[0-9]{1,19}$/.test(id) || !isEqual(seal(connectionId, id), sealed)) {
        throw new GitError("RepositoryNotFound", "the connection has no such repository");
      }
      return id;
    },
  };
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Ids in specs: without a key, so that every process of the platform opens them. */
export const { seal: sealRepositoryId, open: openRepositoryId } = repositoryIdForm((text) =>
  createHash("sha256").update(text).digest("hex").slice(0, 12),
);
