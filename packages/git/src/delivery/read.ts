/** Reads deliveries of Forgejo, Gitea and GitHub. Their signatures are checked before, by `isSigned`. */

import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";

/** A delivery that is none: headers or body lack what every sender gives. */
export class DeliveryError extends Error {
  override readonly name = "DeliveryError";
}

// Ids are 64-bit numbers; a name may be longer than what anybody builds from, and is cut by nobody.
const repository = z.object({
  id: z.union([z.int().positive(), z.string().regex(/^[0-9]{1,19}$/)]).transform(String),
  full_name: z.string().min(1).max(512).optional(),
});
const name = z.string().min(1).max(255);
const sha = z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/);

const push = z.object({ ref: z.string().min(1).max(300), after: sha, repository });
const create = z.object({ ref: name, ref_type: z.string(), sha: sha.optional(), repository });
const release = z.object({
  action: z.string(),
  release: z.object({ tag_name: name, draft: z.boolean(), prerelease: z.boolean() }),
  repository,
});

/** How events name their repository. */
const of = ({ id, full_name: path }: z.output<typeof repository>) => ({
  repository: id,
  ...(path === undefined ? {} : { path }),
});

const BRANCH = "refs/heads/";
const NO_COMMIT = /^0+$/;

/** The first of the headers that is there once. Forgejo and Gitea also send those of whom they imitate. */
function header(headers: Headers, names: readonly string[]): string | undefined {
  for (const one of names) {
    const value = headers[one];
    if (typeof value === "string" && value !== "") {
      return value;
    }
  }
  return undefined;
}

const EVENT = ["x-forgejo-event", "x-gitea-event", "x-github-event"];
const ID = ["x-forgejo-delivery", "x-gitea-delivery", "x-github-delivery"];

/**
 * Reads a delivery's id and event.
 * @param body the parsed JSON
 * @throws DeliveryError that says which header or field is missing or wrong
 */
export function readDelivery(headers: Headers, body: unknown): Delivery {
  const kind = header(headers, EVENT);
  const id = header(headers, ID);
  if (kind === undefined) {
    throw new DeliveryError("no header names the event");
  }
  if (id === undefined || !/^[A-Za-z0-9-]{8,64}$/.test(id)) {
    throw new DeliveryError("no header names the delivery");
  }
  // Also of a kind that starts nothing.
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new DeliveryError("the body is no JSON object");
  }
  return { id, event: readEvent(kind, body) };
}

function readEvent(kind: string, body: unknown): GitEvent | undefined {
  switch (kind) {
    case "push": {
      const { ref, after, repository } = parsed(push, body);
      // The deletion of a branch is a push of nothing; a tag's push has the creation beside it.
      if (!ref.startsWith(BRANCH) || NO_COMMIT.test(after)) {
        return undefined;
      }
      return { kind: "push", ...of(repository), branch: ref.slice(BRANCH.length), commitSha: after };
    }
    case "create": {
      const { ref, ref_type, sha, repository } = parsed(create, body);
      if (ref_type !== "tag") {
        return undefined;
      }
      return {
        kind: "tag",
        ...of(repository),
        tag: ref,
        ...(sha === undefined ? {} : { commitSha: sha }),
      };
    }
    case "release": {
      const { action, release: one, repository } = parsed(release, body);
      if (action !== "published") {
        return undefined;
      }
      const { tag_name: tag, draft, prerelease } = one;
      return { kind: "release", ...of(repository), tag, draft, prerelease };
    }
    default:
      return undefined;
  }
}

function parsed<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body);
  if (result.success) {
    return result.data;
  }
  const fields = result.error.issues.map(({ path }) => path.join(".") || "body").join(", ");
  throw new DeliveryError(`the body lacks what its event has, or it is wrong: ${fields}`);
}

// Events, the same for every provider.

interface OfRepository {
  /** The provider's own id of the repository. */
  repository: string;
  /** `owner/name`, where the sender names it. */
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
  /** Not sent by GitHub. */
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
  /** Undefined for an event that starts no build. */
  event: GitEvent | undefined;
}

// Signatures of hook deliveries: HMAC-SHA-256 over the raw body, as hexadecimal digits.

/** Request headers as Node gives them: lower-case names. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

const HEX = /^[0-9a-f]{64}$/;

/** Headers that carry a signature. GitHub's, which Gitea and Forgejo send too, has the algorithm before it. */
const SIGNATURE_HEADERS: readonly { name: string; prefix: string }[] = [
  { name: "x-forgejo-signature", prefix: "" },
  { name: "x-gitea-signature", prefix: "" },
  { name: "x-hub-signature-256", prefix: "sha256=" },
];

/** The signature of a body. */
export function signBody(secret: string, body: Uint8Array): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

/**
 * Whether a delivery is signed with the secret. It needs one signature at least, and every one that it carries must be
 * right: an empty, doubled or malformed one counts as wrong. An empty secret signs nothing.
 */
export function isSigned(secret: string, body: Uint8Array, headers: Headers): boolean {
  if (secret === "") {
    return false;
  }
  const given = SIGNATURE_HEADERS.filter(({ name }) => headers[name] !== undefined);
  if (given.length === 0) {
    return false;
  }
  const expected = Buffer.from(signBody(secret, body));
  let isRight = true;
  for (const { name, prefix } of given) {
    const value = headers[name];
    const digits = typeof value === "string" && value.startsWith(prefix) ? value.slice(prefix.length) : "";
    const isHex = HEX.test(digits);
    // Compared in any case, so that the time shows nothing of the shape.
    const isEqual = timingSafeEqual(Buffer.from(isHex ? digits : "0".repeat(64)), expected);
    isRight = isRight && isHex && isEqual;
  }
  return isRight;
}
