import { connectionString, type Project } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { databaseSpec, databaseStatus, HOST, PORT } from "../../../test/kit/api-server/databases.ts";
import { addressOf, connectionOf, secretConnectionOf } from "./connection.ts";

const NAMESPACE = "slipway-org-acme";

function project(type: Parameters<typeof databaseSpec>[0], status?: Project["status"]): Project {
  return {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    metadata: { name: "pshop", namespace: NAMESPACE },
    spec: databaseSpec(type),
    ...(status === undefined ? {} : { status }),
  };
}

const awaited = { type: "AddressReady", status: "False", reason: "AddressPending", message: "" } as const;
const condition = { ...awaited, lastTransitionTime: "2026-01-01T00:00:00Z" };

describe("the address of a database", () => {
  const statusWith = (change: object = {}) => databaseStatus(project("postgresql"), change);
  const inside = { host: `pshop.${NAMESPACE}.svc`, port: 5432 };
  it.each([
    ["is not observed yet", undefined, undefined],
    ["is reached from outside", { database: statusWith() }, { host: HOST, port: PORT }],
    [
      "its lists allow nobody outside to reach",
      { database: statusWith({ host: undefined, port: undefined }) },
      inside,
    ],
    [
      "waits for its address outside",
      { database: statusWith({ host: undefined, port: undefined }), conditions: [condition] },
      undefined,
    ],
  ] as const)("that %s", (_about, status, address) => {
    expect(addressOf(project("postgresql", status as Project["status"]))).toEqual(address);
  });

  it("is nothing to connect to before user and database are known", () => {
    const database = statusWith({ username: undefined });
    expect(connectionOf(project("postgresql", { database }))).toBeNull();
  });
});

describe("a connection", () => {
  it("has no password when it is read, and all of it when it is shown", () => {
    const shown = project("postgresql", { database: databaseStatus(project("postgresql")) });
    expect(connectionOf(shown)).toEqual({ host: HOST, port: PORT, database: "app", username: "app" });
    expect(secretConnectionOf(shown, { username: "app", database: "app", password: "s3cr3t" })).toEqual({
      host: HOST,
      port: PORT,
      database: "app",
      username: "app",
      password: "s3cr3t",
      connectionString: `postgresql://app:s3cr3t@${HOST}:${PORT}/app`,
    });
  });

  // Shows: docs/databases-api.md#endpoints: `postgresql://`, `mysql://`, `https://` (ClickHouse's HTTP
  it.each([
    ["postgresql", "postgresql://u:p@h:1/d"],
    ["mariadb", "mysql://u:p@h:1/d"],
    ["clickhouse", "https://u:p@h:1/d"],
    ["valkey", "rediss://u:p@h:1/d"],
  ] as const)("string of %s is what its clients take", (engine, expected) => {
    const one = { host: "h", port: 1, database: "d", username: "u", password: "p" };
    expect(connectionString(engine, one)).toBe(expected);
  });

  // Shows: docs/databases-api.md#endpoints: `postgresql://`, `mysql://`, `https://` (ClickHouse's HTTP
  it("string escapes what a user of kubectl has chosen, and is read back as it was", () => {
    const one = { host: "fd00::1", port: 6432, database: "a/b", username: "u@x:", password: "p#?/%\"'ü" };
    const url = new URL(connectionString("postgresql", one));
    expect([url.hostname, url.port]).toEqual(["[fd00::1]", "6432"]);
    expect([url.username, url.password, url.pathname.slice(1)].map(decodeURIComponent)).toEqual([
      one.username,
      one.password,
      one.database,
    ]);
  });
});
