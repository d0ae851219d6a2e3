import { describe, expect, it } from "vitest";
import * as forgejo from "./forgejo/schemas.ts";
import * as github from "./github/schemas.ts";
import { JsonApi, PAGE_SIZE, readAll } from "./json-api.ts";
import type { SsrfSafeFetch } from "./net/fetch.ts";

const sha = "a".repeat(40);
const long = "x".repeat(40_000);
const ok = (schema: { safeParse: (value: unknown) => { success: boolean } }, value: unknown) =>
  schema.safeParse(value).success;

describe("strings of a Git server", () => {
  it("that name a ref are left out where they are too long, and the others stay", () => {
    const names = ["v1", long, "", "x".repeat(255)];
    const found = forgejo.tags.parse(names.map((name) => ({ name, commit: { sha } })));
    expect(found.map(({ name }) => name)).toEqual(["v1", undefined, undefined, "x".repeat(255)]);
    const release = { id: 1, tag_name: long, draft: false, prerelease: false };
    expect(github.releases.parse([release])[0]?.tag_name).toBeUndefined();
  });

  it("are cut where they are shown alone", () => {
    const commit = { sha, commit: { message: `${"t".repeat(600)}\n${long}` } };
    expect(github.commit.parse(commit).commit.message).toBe("t".repeat(512));
    expect(forgejo.commits.parse([{ sha, commit: { message: "title\r\nbody" } }])[0]?.commit.message).toBe(
      "title",
    );
  });

  const repository = { id: 1, full_name: "a/b", default_branch: "main", private: false };
  it.each([
    ["a user", forgejo.user, { login: long }],
    ["a path", forgejo.repository, { ...repository, full_name: long }],
    ["a default branch", github.repository, { ...repository, default_branch: long }],
    ["a moment", github.installationToken, { token: "t", expires_at: long }],
    ["a token", github.installationToken, { token: long, expires_at: "2026-01-01T00:00:00Z" }],
    ["an account", github.installation, { account: { login: long } }],
    ["a hook", forgejo.hook, { id: 1, config: { url: long } }],
    ["a commit", github.commit, { sha: long, commit: { message: "" } }],
  ])("are refused as %s that is too long", (_, schema, value) => expect(ok(schema, value)).toBe(false));

  it("leave out an address that is too long for browsers", () => {
    const found = forgejo.repository.parse({ ...repository, html_url: `https://${long}` });
    expect(found.html_url).toBeUndefined();
  });
});

describe("lists of a Git server", () => {
  const tag = { name: "v1", commit: { sha } };

  it("have no longer pages than were requested", () => {
    expect(
      ok(
        forgejo.tags,
        Array.from({ length: PAGE_SIZE }, () => tag),
      ),
    ).toBe(true);
    expect(
      ok(
        forgejo.tags,
        Array.from({ length: PAGE_SIZE + 1 }, () => tag),
      ),
    ).toBe(false);
    expect(
      ok(
        github.refs,
        Array.from({ length: PAGE_SIZE + 1 }, () => tag),
      ),
    ).toBe(false);
  });

  it("end where they take more bytes than are read of one", async () => {
    let pages = 0;
    const page = JSON.stringify(
      Array.from({ length: PAGE_SIZE }, () => ({ ...tag, notes: "n".repeat(70_000) })),
    );
    const fetch = {
      send: async () => {
        pages += 1;
        return { status: 200, headers: {}, text: page };
      },
    } as unknown as SsrfSafeFetch;
    const api = new JsonApi({ fetch, base: "https://git.example", headers: () => ({}) });
    const read = readAll((page, budget) => api.request("/tags", forgejo.tags, { query: { page }, budget }));
    await expect(read).rejects.toMatchObject({ code: "ProviderUnavailable", message: /larger/ });
    expect(pages).toBe(5);
  });
});
