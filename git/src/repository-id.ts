/** Ids of repositories as clients see them: opaque, and good for one connection only. */

import { createHash } from "node:crypto";
import { GitError } from "./errors.ts";

const seal = (connectionId: string, id: string): string =>
  createHash("sha256")
    .update(JSON.stringify([connectionId, id]))
    .digest("hex")
    .slice(0, 12);

/** What stands for the provider's repository within the connection. */
export function sealRepositoryId(connectionId: string, id: string): string {
  return `r${Buffer.from(id).toString("base64url")}-${seal(connectionId, id)}`;
}

/** The provider's own id. @throws GitError RepositoryNotFound when it was not given out for the connection */
export function openRepositoryId(connectionId: string, sealed: string): string {
  const encoded = /^r([A-Za-z0-9_-]+)-[0-9a-f]{12}$/.exec(sealed)?.[1] ?? "";
  const id = Buffer.from(encoded, "base64url").toString();
  if (!/^[0-9]{1,19}$/.test(id) || sealRepositoryId(connectionId, id) !== sealed) {
    throw new GitError("RepositoryNotFound", "the connection has no such repository");
  }
  return id;
}
