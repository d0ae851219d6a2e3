import { describe, expect, test } from "vitest";
import { exampleCredentials } from "../../../../test/kit/databases/examples.ts";
import { credentialsProblem, parseSetup, passwordHash, setupScript } from "./sql.ts";

describe("names", () => {
  test.each([
    "root",
    "mysql",
    "slipway_monitor",
    "Slipway",
    "sys",
    "",
    "a b",
    "a-b",
    "é",
    "x".repeat(64),
    "1a",
  ])("%j is refused for a user or a database", (name) => {
    for (const key of ["username", "database"]) {
      const problem = credentialsProblem({ ...exampleCredentials, [key]: name });
      expect(problem).toBe(`The ${key} in the credentials Secret cannot be used.`);
    }
  });

  test("of the platform's own making are taken", () => {
    expect(credentialsProblem(exampleCredentials)).toBeUndefined();
    expect(credentialsProblem({ ...exampleCredentials, password: "" })).toContain("password");
  });
});

test("passwords are sent as the hash that the server would compute itself", () => {
  // As SELECT PASSWORD('password') answers.
  expect(passwordHash("password")).toBe("*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
});

describe("the script", () => {
  const script = (setPassword: boolean) =>
    setupScript({
      credentials: { ...exampleCredentials, database: "my_shop" },
      setPassword,
      connections: 64,
    });

  test("has no password in it", () => {
    expect(script(true)).not.toContain("password-of");
  });

  test("sets the user's password when it is to be another one", () => {
    const set = /^ALTER USER `app`@'%' IDENTIFIED/m;
    expect([set.test(script(true)), set.test(script(false))]).toEqual([true, false]);
  });

  test("grants one database and not those whose names are like it", () => {
    expect(script(false)).toContain("GRANT ALL PRIVILEGES ON `my\\_shop`.* TO `app`@'%';");
  });
});

test("its answer is the version and the group's UUID", () => {
  const uuid = "71951be9-e5f5-11f1-ab66-3a367bef804d";
  expect(parseSetup(`11.8.6-MariaDB-0+deb13u1 from Debian\t${uuid}\n`)).toEqual({
    version: "11.8.6",
    identity: uuid,
  });
  expect(parseSetup("ERROR 1045 (28000): Access denied")).toBeUndefined();
});
