import { generateKeyPairSync } from "node:crypto";
import { GitError, sealRepositoryId } from "@slipway/git";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RepositoryIds } from "./repository-ids.ts";

const ids = new RepositoryIds(generateKeyPairSync("ed25519"));
const missing = expect.objectContaining({ code: "RepositoryNotFound" });

describe("an id that is given out", () => {
  it("opens for its connection alone, and with its key alone", () => {
    const another = new RepositoryIds(generateKeyPairSync("ed25519"));
    const id = fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }).map(String);
    fc.assert(
      fc.property(id, fc.string(), fc.string(), (id, connection, other) => {
        const sealed = ids.seal(connection, id);
        expect(sealed).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
        expect(ids.open(connection, sealed)).toBe(id);
        expect(() => another.open(connection, sealed)).toThrow(missing);
        if (other !== connection) {
          expect(() => ids.open(other, sealed)).toThrow(missing);
        }
      }),
    );
  });

  it("is none that a client can make of a repository's number, as a spec's can be", () => {
    const sealedId = sealRepositoryId("g1", "17");
    expect(() => ids.open("g1", sealedId)).toThrow(missing);
    expect(ids.kept({ connectionId: "g1", repositoryId: sealedId }).repositoryId).toBe("");
  });

  it.each(["", "1", "r-", `rMQ-${"0".repeat(32)}`, "../1", "rMQ", `r${"x".repeat(2_000)}`])(
    "is not %j",
    (text) => {
      expect(() => ids.open("g1", text)).toThrow(GitError);
    },
  );
});

describe("a spec", () => {
  const stored = { connectionId: "g1", repositoryId: sealRepositoryId("g1", "17") };

  it("keeps what was sent without the key, and is shown with it", () => {
    const sent = { connectionId: "g1", repositoryId: ids.seal("g1", "17"), branch: "main" };
    expect(ids.kept(sent)).toEqual({ ...stored, branch: "main" });
    expect(ids.shown(stored)).toBe(sent.repositoryId);
  });

  it("may be sent back as it is, for its own project and connection", () => {
    expect(ids.kept(stored, stored)).toEqual(stored);
    expect(ids.kept(stored, { ...stored, repositoryId: sealRepositoryId("g1", "18") }).repositoryId).toBe("");
    expect(ids.kept({ ...stored, connectionId: "g2" }, stored).repositoryId).toBe("");
  });

  it("that names nothing is shown as it is", () => {
    expect(ids.shown({ connectionId: "g1", repositoryId: "r1" })).toBe("r1");
  });
});
