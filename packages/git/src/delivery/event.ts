/** What a delivery tells, whoever sent it. */

interface OfRepository {
  /** The provider's own id of the repository. */
  repository: string;
  /** `owner/name`, where the sender tells it. */
  path?: string;
}

/** A branch has a new commit. */
export interface PushEvent extends OfRepository {
  kind: "push";
  branch: string;
  commitSha: string;
}

/** A tag was made. */
export interface TagEvent extends OfRepository {
  kind: "tag";
  tag: string;
  /** GitHub does not tell. */
  commitSha?: string;
}

/** A release was published. */
export interface ReleaseEvent extends OfRepository {
  kind: "release";
  tag: string;
  draft: boolean;
  prerelease: boolean;
}

export type GitEvent = PushEvent | TagEvent | ReleaseEvent;

/** A delivery whose signature was right. */
export interface Delivery {
  /** The sender's id of it: the same when it is sent again. */
  id: string;
  /** What it tells; undefined when it is about nothing that starts a build. */
  event: GitEvent | undefined;
}
