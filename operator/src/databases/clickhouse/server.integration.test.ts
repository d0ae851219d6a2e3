import { chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { credentialKeys } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { buildImage } from "../../../../hack/images/build.ts";
import { clickhouse, clickhouseUser } from "../../../../hack/images/clickhouse.ts";
import { type InsideProcess, inside } from "../../../../hack/images/inside.ts";
import { freePorts } from "../../../../hack/lib/ports.ts";
import { waitFor } from "../../../../hack/lib/wait.ts";
import { databaseOf, exampleCredentials, exampleDatabase } from "../../../../test/kit/databases/examples.ts";
import { certify, makeAuthority } from "../tls/certificates.ts";
import { certificateNames } from "../tls/secret.ts";
import { serverFiles } from "./config.ts";
import { query, StatementError } from "./http-client.ts";
import { desired } from "./manifests.ts";
import { accounts, HTTPS_PORT, paths, serverAddress } from "./names.ts";
import {
  databaseStatement,
  forgetStatements,
  membersStatement,
  READ_ONLY,
  userStatements,
  VERSION,
} from "./sql.ts";

/**
 * The stand-in's own server, started from the objects that the operator derives from a project, as its pod would be. It has the parser and the
 * settings of ClickHouse itself. Needs root.
 */

const spec = { type: "clickhouse", plan: "analytics-basic", version: "26.8.6.5" } as const;
const database = databaseOf({
  project: exampleDatabase(spec),
  image: { uid: clickhouseUser, gid: clickhouseUser },
  features: { replication: false },
});
const password = (key: keyof typeof credentialKeys) => exampleCredentials[credentialKeys[key]] ?? "";

let close: (() => Promise<void>) | undefined;
let folder = "";
let running: InsideProcess | undefined;
let authority = "";
let port = 0;

beforeAll(async () => {
  const image = await inside(await buildImage(clickhouse()));
  close = image.close;
  folder = await mkdtemp(join(tmpdir(), "slipway-clickhouse-"));
  [port = 0] = await freePorts(1);
  await writeFiles();
  running = image.run(container().command, {
    uid: clickhouseUser,
    env: environment(),
    mounts: {
      [paths.config]: join(folder, "config"),
      [paths.tls]: join(folder, "tls"),
      [paths.data]: join(folder, "data"),
    },
  });
  await waitFor("the server", 60_000, async () => (await asAdmin([VERSION]))[0] !== undefined).catch(
    (error: Error) => {
      throw new Error(`${error.message}\n${running?.output().slice(-2_000)}`);
    },
  );
});
afterAll(async () => {
  await running?.stop("SIGTERM").catch(() => undefined);
  await close?.();
  await rm(folder, { recursive: true, force: true });
});

/** What the kubelet would mount, with a port that no other test has. */
async function writeFiles(): Promise<void> {
  for (const { path, text } of Object.values(serverFiles(database))) {
    const file = join(folder, "config", path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text.replace(`https_port: ${HTTPS_PORT}`, `https_port: ${port}`));
  }
  const pair = await makeAuthority(new Date());
  authority = pair.certificate;
  const own = await certify(pair, certificateNames(database.id, database.namespace), new Date());
  await mkdir(join(folder, "tls"));
  await mkdir(join(folder, "data"));
  await writeFile(join(folder, "tls/tls.crt"), own.certificate);
  await writeFile(join(folder, "tls/tls.key"), own.key);
  await chown(join(folder, "data"), clickhouseUser, clickhouseUser);
}

interface Container {
  command: string[];
  env: { name: string; value?: string; valueFrom?: { secretKeyRef?: { key: string } } }[];
}

function container(): Container {
  const set = desired(database).find(({ kind }) => kind === "StatefulSet") as unknown as {
    spec: { template: { spec: { containers: Container[] } } };
  };
  const [first] = set.spec.template.spec.containers;
  if (!first) {
    throw new Error("no container");
  }
  return first;
}

/** Variables as the kubelet gives them, and some of a project that means harm. */
function environment(): Record<string, string> {
  const known: Record<string, string> = {};
  for (const { name, value, valueFrom } of container().env) {
    const key = valueFrom?.secretKeyRef?.key;
    const text = value ?? (key === undefined ? `${database.id}-0` : (exampleCredentials[key] ?? ""));
    known[name] = text.replaceAll(/\$\((\w+)\)/g, (_, other: string) => known[other] ?? "");
  }
  return { NODE_OPTIONS: "--require=/nowhere.js", SLIPWAY_ADMIN_SHA256: "0".repeat(64), ...known };
}

const asUser = (user: string, secret: string, statements: readonly string[]) =>
  query(
    {
      ip: "127.0.0.1",
      port,
      name: serverAddress(database, `${database.id}-0`),
      authority,
      user,
      password: secret,
    },
    statements,
    AbortSignal.timeout(30_000),
  );
const asAdmin = (statements: readonly string[]) => asUser(accounts.admin, password("superuser"), statements);

describe("a server", () => {
  test("accepts the statements for database and user, however often they are repeated", async () => {
    const statements = (salt: string) => [
      databaseStatement(database, exampleCredentials),
      ...userStatements(exampleCredentials, { setPassword: true, salt }),
    ];
    await asAdmin(statements("one"));
    await asAdmin(statements("two"));
    const mine = [
      "CREATE TABLE app.numbers (n UInt8) ENGINE = MergeTree ORDER BY n",
      "INSERT INTO app.numbers VALUES (1), (2)",
      "SELECT sum(n) FROM app.numbers",
    ];
    expect((await asUser("app", password("password"), mine)).at(-1)).toBe("3");
    await expect(asUser("app", "password-of-nobody", ["SELECT 1"])).rejects.toMatchObject({ code: "516" });
    await expect(asUser("default", "", ["SELECT 1"])).rejects.toBeInstanceOf(StatementError);
  });

  test("keeps a password that is not to be set, and sets another one", async () => {
    const other = { ...exampleCredentials, [credentialKeys.password]: "another-password" };
    await asAdmin(userStatements(other, { setPassword: false, salt: "three" }));
    await expect(asUser("app", "another-password", ["SELECT 1"])).rejects.toMatchObject({ code: "516" });
    await asAdmin(userStatements(other, { setPassword: true, salt: "four" }));
    expect(await asUser("app", "another-password", ["SELECT 1"])).toEqual(["1"]);
    await asAdmin(userStatements(exampleCredentials, { setPassword: true, salt: "five" }));
  });

  test("accepts a previous password until it ends", async () => {
    const renewed = { ...exampleCredentials, [credentialKeys.password]: "renewed-password" };
    const both = { ...renewed, [credentialKeys.previousPassword]: password("password") };
    await asAdmin(userStatements(both, { setPassword: true, salt: "six" }));
    expect(await asUser("app", "renewed-password", ["SELECT 1"])).toEqual(["1"]);
    expect(await asUser("app", password("password"), ["SELECT 1"])).toEqual(["1"]);
    await asAdmin(userStatements(renewed, { setPassword: true, salt: "seven" }));
    expect(await asUser("app", "renewed-password", ["SELECT 1"])).toEqual(["1"]);
    const refused = asUser("app", password("password"), ["SELECT 1"]);
    await expect(refused).rejects.toMatchObject({ code: "516" });
    await asAdmin(userStatements(exampleCredentials, { setPassword: true, salt: "eight" }));
  });

  test("is known by its name alone", async () => {
    const other = { ip: "127.0.0.1", port, name: "till-0.till-nodes.slipway-org-alpha.svc", authority };
    const account = { user: accounts.admin, password: password("superuser") };
    const asking = query({ ...other, ...account }, [VERSION], AbortSignal.timeout(10_000));
    await expect(asking).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
  });
});

describe("ClickHouse's own parser and settings", () => {
  test("know every statement about several servers", async () => {
    const real = databaseOf({
      project: exampleDatabase({ ...spec, plan: "analytics-business", instances: 3 }),
    });
    const statements = [
      databaseStatement(real, exampleCredentials),
      ...forgetStatements("shop-3\t0", exampleCredentials, ["shop-0"]),
      membersStatement(exampleCredentials),
      READ_ONLY,
      ...userStatements(
        { ...exampleCredentials, [credentialKeys.previousPassword]: "before" },
        { setPassword: true, salt: "salt" },
      ).filter((text) => text.startsWith("ALTER USER")),
    ];
    expect(statements).toHaveLength(6);
    const quoted = statements.map((text) => text.replaceAll("\\", "\\\\").replaceAll("'", "\\'"));
    const read = quoted.map((text) => `SELECT formatQuerySingleLine('${text}') FORMAT TabSeparatedRaw`);
    expect(await asAdmin(read)).toEqual(statements);
  });

  test("know every setting of the profile", async () => {
    const real = databaseOf({
      project: exampleDatabase({ ...spec, plan: "analytics-business", instances: 3 }),
    });
    const { profiles } = parse(serverFiles(real)["users.yaml"].text) as {
      profiles: { default: Record<string, unknown> };
    };
    const names = Object.keys(profiles.default).toSorted();
    const list = names.map((name) => `'${name}'`).join();
    const [found = ""] = await asAdmin([
      `SELECT name FROM system.settings WHERE name IN (${list}) ORDER BY name FORMAT TabSeparated`,
    ]);
    expect(found.split("\n")).toEqual(names);
  });
});
