import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isSigned, signBody } from "./signature.ts";

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
