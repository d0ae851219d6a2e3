import fc from "fast-check";
import { expect, it } from "vitest";
import { cursorOf, pageOf } from "./json-api.ts";
import { openRepositoryId, sealRepositoryId } from "./provider.ts";

const missing = expect.objectContaining({ code: "RepositoryNotFound" });

it("an id opens for its connection alone", () => {
  const id = fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }).map(String);
  fc.assert(
    fc.property(id, fc.string(), fc.string(), (id, connection, other) => {
      const sealed = sealRepositoryId(connection, id);
      expect(sealed).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(openRepositoryId(connection, sealed)).toBe(id);
      if (other !== connection) {
        expect(() => openRepositoryId(other, sealed)).toThrow(missing);
      }
    }),
  );
});

it.each(["", "1", "r-", "rMQ-000000000000", "../1", "rMQ", `r${"x".repeat(2_000)}`])(
  "%j opens nothing",
  (text) => {
    expect(() => openRepositoryId("g1", text)).toThrow(missing);
  },
);

// Shows: docs/git.md#over-v1: 400 `GIT_CURSOR_INVALID` | a cursor that `/v1` has not returned
it("a cursor is the page that it was given out for", () => {
  for (const page of [1, 2, 17, 99_999]) {
    expect(pageOf(cursorOf(page))).toBe(page);
  }
  expect(pageOf(undefined)).toBe(1);
});

it.each(["", "2", "x", "cGFnZTow", "cGFnZToy=", "cGFnZTotMQ", Buffer.from("page:2x").toString("base64url")])(
  "%j is no cursor",
  (text) => {
    expect(() => pageOf(text)).toThrow(expect.objectContaining({ code: "CursorInvalid" }));
  },
);
