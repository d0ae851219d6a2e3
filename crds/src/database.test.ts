import { describe, expect, it } from "vitest";
import { completeCredentials, credentialsHash, isDatabaseType, newPassword } from "./database.ts";

/** Counts up, so that no two passwords are equal. */
function counting() {
  let next = 0;
  return (below: number) => next++ % below;
}

describe("credentials of a database", () => {
  it("are made whole, each password another", () => {
    const made = completeCredentials("postgresql", {}, counting());
    expect(made).toMatchObject({ username: "app", database: "app" });
    const passwords = ["password", "superuser-password", "replication-password", "monitor-password"].map(
      (key) => made[key],
    );
    expect(new Set(passwords).size).toBe(4);
    for (const password of passwords) {
      expect(password).toMatch(/^[A-Za-z0-9]{32}$/);
    }
  });

  it("keep existing ones", () => {
    const given = { username: "shop", password: "chosen by its owner", "previous-password": "old" };
    expect(completeCredentials("mariadb", given, counting())).toMatchObject({ ...given, database: "app" });
  });

  it("take every character of the alphabet", () => {
    const all = new Set(Array.from({ length: 62 }, (_, i) => newPassword(() => i)[0]));
    expect(all.size).toBe(62);
  });

  it("have a hash that follows what the user connects with, and nothing else", () => {
    const base = completeCredentials("postgresql", {}, counting());
    const hash = credentialsHash(base);
    expect(hash).toMatch(/^[0-9a-f]{32}$/);
    expect(credentialsHash({ ...base, "previous-password": "x", "superuser-password": "y" })).toBe(hash);
    for (const key of ["password", "username", "database", "monitor-password"]) {
      expect(credentialsHash({ ...base, [key]: "other" }), key).not.toBe(hash);
    }
  });
});

it("distinguishes databases from other types", () => {
  expect(
    ["http", "postgresql", "mariadb", "clickhouse", "valkey", "job"].map((type) =>
      isDatabaseType(type as "http"),
    ),
  ).toEqual([false, true, true, true, true, false]);
});
