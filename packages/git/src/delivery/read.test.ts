import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DeliveryError, type Headers, isSigned, readDelivery, signBody } from "./read.ts";

/** What a server sent: Gitea's were recorded, headers and bytes; GitHub's are after its documentation. */
function recorded(file: string): { headers: Headers; body: string } {
  return JSON.parse(readFileSync(new URL(`testdata/${file}.json`, import.meta.url), "utf8"));
}
const eventOf = (file: string) => {
  const { headers, body } = recorded(file);
  return readDelivery(headers, JSON.parse(body)).event;
};

const repository = "1";
const sha = expect.stringMatching(/^[0-9a-f]{40}$/);
const gitea = ["push-branch", "push-tag", "push-tag-deleted", "create-tag", "release-published"];

describe("a delivery of Gitea", () => {
  it.each(gitea)("of %s is signed as it was recorded, and has an id", (file) => {
    const { headers, body } = recorded(`gitea-1.26/${file}`);
    expect(isSigned("hook-secret", Buffer.from(body), headers)).toBe(true);
    expect(isSigned("hook-secret", Buffer.from(`${body} `), headers)).toBe(false);
    expect(readDelivery(headers, JSON.parse(body)).id).toBe(headers["x-gitea-delivery"]);
  });

  it.each([
    ["push-branch", { kind: "push", repository, branch: "main", commitSha: sha }],
    ["push-tag", undefined],
    ["push-tag-deleted", undefined],
    ["create-tag", { kind: "tag", repository, tag: "v1.0.0", commitSha: sha }],
    ["release-deleted", undefined],
    ["release-published", { kind: "release", repository, tag: "v1.1.0", draft: false, prerelease: false }],
  ])("of %s has the event %j", (file, event) => {
    expect(eventOf(`gitea-1.26/${file}`)).toEqual(event && { ...event, path: "slipway/sample-node" });
  });
});

describe("a delivery of GitHub", () => {
  const github = "1296269";
  it.each([
    [
      "push",
      {
        kind: "push",
        repository: github,
        branch: "main",
        commitSha: "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5",
      },
    ],
    ["create-tag", { kind: "tag", repository: github, tag: "v1.0.0" }],
    [
      "release-published",
      { kind: "release", repository: github, tag: "v1.0.0", draft: false, prerelease: true },
    ],
    ["release-created", undefined],
  ])("of %s has the event %j", (file, event) => {
    expect(eventOf(`github/${file}`)).toEqual(event && { ...event, path: "octocat/Hello-World" });
  });
});

const headers = { "x-forgejo-event": "push", "x-forgejo-delivery": "0a1b2c3d-0000" };
const push = { ref: "refs/heads/main", after: "a".repeat(40), repository: { id: 1 } };

describe("a delivery", () => {
  it.each([
    ["the deletion of a branch", { ...push, after: "0".repeat(40) }],
    ["a push of something else", { ...push, ref: "refs/notes/commits" }],
  ])("of %s has no event", (_, body) => {
    expect(readDelivery(headers, body).event).toBeUndefined();
  });

  it("of a new branch has no event, for a push is sent as well", () => {
    const body = { ref: "feature", ref_type: "branch", sha: "a".repeat(40), repository: { id: 1 } };
    expect(readDelivery({ ...headers, "x-forgejo-event": "create" }, body).event).toBeUndefined();
  });

  it.each(["ping", "issues", "delete", "constructor"])("of the kind %s has no event", (kind) => {
    expect(readDelivery({ ...headers, "x-forgejo-event": kind }, { zen: "x" }).event).toBeUndefined();
  });

  it("of a repository with SHA-256 has its commit", () => {
    expect(readDelivery(headers, { ...push, after: "b".repeat(64) }).event).toMatchObject({
      commitSha: "b".repeat(64),
    });
  });

  it.each([
    ["no event", { "x-forgejo-delivery": "0a1b2c3d-0000" }, push],
    ["no id", { "x-forgejo-event": "push" }, push],
    ["an id that is none", { ...headers, "x-forgejo-delivery": "../../etc" }, push],
    ["no repository", headers, { ...push, repository: undefined }],
    ["a repository without a number", headers, { ...push, repository: { id: "../1" } }],
    ["a commit that is none", headers, { ...push, after: "main; rm -rf" }],
    ["no ref", headers, { ...push, ref: undefined }],
    ["a list for a body", headers, []],
    ["no body", headers, null],
  ])("with %s is refused", (_, given, body) => {
    expect(() => readDelivery(given as Headers, body)).toThrow(DeliveryError);
  });
});

const SECRET = "It's a Secret to Everybody";
const BODY = Buffer.from("Hello, World!");
// From GitHub's documentation on validating deliveries.
const KNOWN = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

describe("a signature", () => {
  it("is the one of GitHub's documentation", () => {
    expect(signBody(SECRET, BODY)).toBe(KNOWN);
  });

  it.each([
    ["Forgejo's", { "x-forgejo-signature": KNOWN }],
    ["Gitea's", { "x-gitea-signature": KNOWN }],
    ["GitHub's", { "x-hub-signature-256": `sha256=${KNOWN}` }],
    ["all of them", { "x-gitea-signature": KNOWN, "x-hub-signature-256": `sha256=${KNOWN}` }],
  ])("of %s kind is taken", (_, headers) => {
    expect(isSigned(SECRET, BODY, headers)).toBe(true);
  });

  it.each([
    ["none", {}],
    ["SHA-1 alone", { "x-hub-signature": "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59" }],
    ["an empty one", { "x-gitea-signature": "" }],
    ["an empty one beside a right one", { "x-forgejo-signature": "", "x-gitea-signature": KNOWN }],
    ["a wrong one beside a right one", { "x-forgejo-signature": "0".repeat(64), "x-gitea-signature": KNOWN }],
    ["two of a kind", { "x-gitea-signature": [KNOWN, KNOWN] }],
    ["one too short", { "x-gitea-signature": KNOWN.slice(1) }],
    ["one too long", { "x-gitea-signature": `${KNOWN}0` }],
    ["capital digits", { "x-gitea-signature": KNOWN.toUpperCase() }],
    ["GitHub's without the algorithm", { "x-hub-signature-256": KNOWN }],
    ["Gitea's with one", { "x-gitea-signature": `sha256=${KNOWN}` }],
    ["another algorithm", { "x-hub-signature-256": `sha1=${KNOWN}` }],
    ["characters of more bytes", { "x-gitea-signature": "é".repeat(64) }],
  ])("%s is refused", (_, headers) => {
    expect(isSigned(SECRET, BODY, headers)).toBe(false);
  });

  it("with an empty secret is refused, though it is right", () => {
    expect(isSigned("", BODY, { "x-gitea-signature": signBody("", BODY) })).toBe(false);
  });

  it("holds for one body and one secret alone", () => {
    const bytes = fc.uint8Array({ maxLength: 64 });
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }),
        fc.string({ minLength: 1 }),
        bytes,
        bytes,
        (a, b, one, other) => {
          const headers = { "x-gitea-signature": signBody(a, one) };
          expect(isSigned(a, one, headers)).toBe(true);
          // HMAC pads a short secret with zero bytes, so those differ in name only.
          if (a.replace(/\0+$/, "") !== b.replace(/\0+$/, "")) {
            expect(isSigned(b, one, headers)).toBe(false);
          }
          if (Buffer.compare(one, other) !== 0) {
            expect(isSigned(a, other, headers)).toBe(false);
          }
        },
      ),
    );
  });
});
