import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Access } from "./access.ts";
import { readConfig, sha256 } from "./config.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-clickhouse-"));
});
afterEach(() => rm(folder, { recursive: true }));

const configuration = `
http_port: 8123
https_port: "8443"
openSSL: { server: { certificateFile: /tls/tls.crt, privateKeyFile: /tls/tls.key } }
users:
  platform: { password: { "@from_env": SECRET }, access_management: 1 }
  watcher: { password_sha256_hex: ${sha256("w").toUpperCase()}, profile: readonly }
  default: { "@remove": remove }
`;
const profiles =
  "profiles: { readonly: { readonly: 1 } }\nmax_concurrent_queries: 4\nmax_server_memory_usage: 1000\nhttp_port:\n";

test("configuration is merged from its files, with variables, and users with their profiles", () => {
  const config = readConfig([configuration, profiles], { SECRET: "s" });
  expect(config).toEqual({
    path: "/var/lib/clickhouse/",
    httpPort: undefined,
    httpsPort: 8443,
    tls: { certificate: "/tls/tls.crt", key: "/tls/tls.key" },
    maxConcurrentQueries: 4,
    maxMemory: 1000,
    users: [
      { name: "platform", sha256: sha256("s"), readOnly: false, manages: true },
      { name: "watcher", sha256: sha256("w"), readOnly: true, manages: false },
    ],
  });
  expect(readConfig([], {})).toMatchObject({ httpPort: 8123, httpsPort: undefined, users: [] });
  expect(() => readConfig([configuration], {})).toThrow("SECRET");
  expect(() => readConfig(["https_port: 8443"], {})).toThrow("openSSL");
  expect(() => readConfig(["http_port: 99999"], {})).toThrow("http_port");
});

async function opened() {
  const { users } = readConfig([configuration, profiles], { SECRET: "s" });
  const file = join(folder, "access/users.json");
  const access = await Access.open(users, file);
  const platform = access.authenticate("platform", "s");
  return { access, platform, file, again: () => Access.open(users, file) };
}

test("users are authenticated by their passwords, and a failure reveals nothing else", async () => {
  const { access } = await opened();
  const failed = /Code: 516\..* password is incorrect, or there is no user/;
  for (const [name, password] of [
    ["platform", "S"],
    ["platform", ""],
    ["nobody", ""],
    ["default", ""],
    ["watcher", sha256("w")],
  ] as const) {
    expect(() => access.authenticate(name, password)).toThrow(failed);
  }
  expect(access.authenticate("watcher", "w")).toMatchObject({ readOnly: true });
});

test("users made by SQL are kept, with the hash of their password alone", async () => {
  const { access, platform, file, again } = await opened();
  await access.carryOut(
    "CREATE USER IF NOT EXISTS app IDENTIFIED WITH sha256_password BY 'it''s' HOST ANY",
    platform,
  );
  expect(access.authenticate("app", "it's")).toMatchObject({ readOnly: true, manages: false });
  await access.carryOut("GRANT SELECT ON system.* TO app", platform);
  expect(access.authenticate("app", "it's").readOnly).toBe(true);
  await access.carryOut("GRANT ALL ON `app`.* TO app", platform);
  await access.carryOut("CREATE USER IF NOT EXISTS app IDENTIFIED BY 'other'", platform);
  const later = await again();
  expect(later.authenticate("app", "it's")).toMatchObject({ readOnly: false, manages: false });
  await later.carryOut(
    `ALTER USER app IDENTIFIED WITH sha256_hash BY '${sha256("newsalt")}' SALT 'salt'`,
    platform,
  );
  expect(later.authenticate("app", "new")).toMatchObject({ readOnly: false });
  expect(() => later.authenticate("app", "it's")).toThrow("Code: 516.");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, "utf8")).not.toContain("new");
  await later.carryOut("DROP USER IF EXISTS app, other", platform);
  expect(() => later.authenticate("app", "new")).toThrow("Code: 516.");
});

test("a user may have several passwords, until it is to have one", async () => {
  const { access, platform, again } = await opened();
  const hash = (password: string) => `sha256_hash BY '${sha256(`${password}salt`)}' SALT 'salt'`;
  await access.carryOut(`CREATE USER app IDENTIFIED WITH ${hash("new")}`, platform);
  await access.carryOut(`ALTER USER app IDENTIFIED WITH ${hash("new")}, ${hash("old")}`, platform);
  const later = await again();
  expect(later.authenticate("app", "new").name).toBe("app");
  expect(later.authenticate("app", "old").name).toBe("app");
  expect(() => later.authenticate("app", "other")).toThrow("Code: 516.");
  await later.carryOut(`ALTER USER app IDENTIFIED WITH ${hash("new")}`, platform);
  expect(later.authenticate("app", "new").name).toBe("app");
  expect(() => later.authenticate("app", "old")).toThrow("Code: 516.");
});

test("only who manages users changes them, and those of the configuration stay", async () => {
  const { access, platform } = await opened();
  const watcher = access.authenticate("watcher", "w");
  expect(await access.carryOut("CREATE TABLE user (a Int8) ENGINE = Memory", watcher)).toBe(false);
  await expect(access.carryOut("create user x", watcher)).rejects.toThrow("Code: 497.");
  await expect(access.carryOut("ALTER USER watcher IDENTIFIED BY 'x'", platform)).rejects.toThrow(
    "Code: 497.",
  );
  await expect(access.carryOut("DROP USER x", platform)).rejects.toThrow("Code: 192.");
  await access.carryOut("CREATE USER x", platform);
  await expect(access.carryOut("CREATE USER x", platform)).rejects.toThrow("Code: 493.");
  await expect(access.carryOut("CREATE ROLE r", platform)).rejects.toThrow("Code: 48.");
  await expect(access.carryOut("ALTER USER x IDENTIFIED WITH ldap BY 'y'", platform)).rejects.toThrow(
    "Code: 48.",
  );
});
