import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isLong } from "../../test/kit/long.ts";
import { run as runHere } from "../lib/exec.ts";
import { freePorts } from "../lib/ports.ts";
import { waitFor } from "../lib/wait.ts";
import type { InsideProcess } from "./inside.ts";
import { BUILD_MS, opened, versionsOf } from "./opened.ts";

test.each(versionsOf("postgresql"))(
  "PostgreSQL %s has what Patroni needs, counts statements, speaks TLS and stops cleanly",
  async (version) => {
    const { start, run } = await opened("postgresql", version);
    const [port = 0] = await freePorts(1);
    const env = { PATH: `/usr/lib/postgresql/${version}/bin:/usr/bin:/bin` };
    const sh = (script: string, more = {}) => run(["/bin/sh", "-c", script], { ...env, ...more });
    for (const tool of [
      "postgres",
      "initdb",
      "pg_ctl",
      "pg_controldata",
      "pg_rewind",
      "pg_isready",
      "psql",
    ]) {
      expect(await sh(`${tool} --version`)).toMatch(new RegExp(`\\(PostgreSQL\\) ${version}\\.`));
    }
    expect(await sh("patroni --version; patronictl version")).toMatch(
      /^patroni 4\.1\.\d+\npatronictl version 4\.1/,
    );
    expect(await sh("python3 -c 'import patroni.dcs.kubernetes, patroni.postgresql.connection'")).toBe("");

    await sh("initdb -D /volume/data --data-checksums --locale=C.UTF-8 --auth=trust --username=postgres");
    const tls = ["ssl=on", "ssl_cert_file=/volume/tls.crt", "ssl_key_file=/volume/tls.key"];
    const settings = [...tls, "shared_preload_libraries=pg_stat_statements", "listen_addresses=127.0.0.1"];
    const arguments_ = [...settings, "unix_socket_directories=/tmp"].flatMap((one) => ["-c", one]);
    const server = start(
      ["/bin/env", "postgres", "-D", "/volume/data", "-p", String(port), ...arguments_],
      env,
    );
    const connection = `host=127.0.0.1 port=${port} user=postgres sslmode=verify-full sslrootcert=/volume/tls.crt`;
    const query = (sql: string): Promise<string> => run(["/bin/env", "psql", "-XAtqc", sql, connection], env);
    await waitFor("PostgreSQL", 30_000, () => query("create extension pg_stat_statements"));
    // Without LLVM a statement that would be compiled is run as it is.
    const costly = "set jit = on; set jit_above_cost = 0; select sum(i) from generate_series(1, 1000) i";
    expect(await query(costly)).toBe("500500");
    expect(
      await query(
        "select ssl, (select count(*) > 0 from pg_stat_statements) from pg_stat_ssl where pid = pg_backend_pid()",
      ),
    ).toBe("t|t");
    expect(await query("show data_checksums")).toBe("on");
    for (const extension of ["pgcrypto", "hstore", "pg_trgm", "uuid-ossp", "postgres_fdw"]) {
      await query(`create extension "${extension}"`);
    }
    await run(["/bin/env", "pg_basebackup", "-d", connection, "-D", "/volume/copy", "-X", "stream"], env);
    expect(await sh("pg_controldata /volume/copy")).toMatch(/Data page checksum version: +1/);
    expect(await server.stop("SIGINT")).toBe(0);
  },
  BUILD_MS,
);

// The group of the operator's tests does the same with the scripts of its pods.
test.skipIf(!isLong).each(versionsOf("mariadb"))(
  "MariaDB %s makes a cluster, copies its data to a second node, and reports the position of a killed one (--long)",
  async (version) => {
    const { start, run, volume } = await opened("mariadb", version);
    const ports = await freePorts(8);
    /** A node whose data are in this folder; answers its socket and the port at which others find it. */
    const configure = async (folder: string, [sql, group, ist, sst]: number[]) => {
      const listen = `base_port=${group};gmcast.listen_addr=tcp://127.0.0.1:${group}`;
      const lines = [
        ...[
          "[mysqld]",
          `datadir=/volume/${folder}`,
          `socket=/volume/${folder}/s`,
          `pid-file=/volume/${folder}/pid`,
        ],
        ...["bind-address=127.0.0.1", `port=${sql}`, "binlog_format=ROW", "innodb_autoinc_lock_mode=2"],
        ...["innodb_buffer_pool_size=16M", "wsrep_on=ON", "wsrep_provider=/usr/lib/galera/libgalera_smm.so"],
        ...["wsrep_cluster_name=test", "wsrep_node_address=127.0.0.1", `wsrep_node_name=${folder}`],
        ...[
          "wsrep_sst_method=mariabackup",
          "wsrep_sst_auth=root:",
          `wsrep_sst_receive_address=127.0.0.1:${sst}`,
        ],
        `wsrep_provider_options="${listen};ist.recv_addr=127.0.0.1:${ist};gcache.size=8M"`,
      ];
      await writeFile(join(volume, `${folder}.cnf`), `${lines.join("\n")}\n`);
      return { socket: `/volume/${folder}/s`, group };
    };
    const first = await configure("data", ports.slice(0, 4));
    const second = await configure("copy", ports.slice(4));
    const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
    const ask = (socket: string, sql: string): Promise<string> =>
      run(["/bin/env", "mariadb", "--no-defaults", "--socket", socket, "-uroot", "-BNe", sql], env);
    const synced = (socket: string, size: number, server: InsideProcess) =>
      waitFor(`a cluster of ${size}`, 90_000, async () => {
        const names = "('wsrep_cluster_size', 'wsrep_local_state')";
        const statement = `select variable_value from information_schema.global_status where variable_name in ${names}`;
        return (await ask(socket, `${statement} order by variable_name`)) === `${size}\n4`;
      }).catch((error: Error) => {
        throw new Error(`${error.message}\n${server.output().slice(-4000)}`);
      });

    const install = ["--auth-root-authentication-method=normal", "--skip-test-db", "--wsrep-on=OFF"];
    await run(["/bin/env", "mariadb-install-db", "--defaults-file=/volume/data.cnf", ...install], env);
    const mariadbd = (folder: string, ...flags: string[]) => [
      "/bin/env",
      "mariadbd",
      `--defaults-file=/volume/${folder}.cnf`,
      ...flags,
    ];
    const begun = start(mariadbd("data", "--wsrep-cluster-address=gcomm://", "--wsrep-new-cluster"), env);
    await synced(first.socket, 1, begun);
    await ask(first.socket, "create database d; create table d.kept (id int primary key)");
    await ask(first.socket, "insert into d.kept values (7)");
    const joined = start(mariadbd("copy", `--wsrep-cluster-address=gcomm://127.0.0.1:${first.group}`), env);
    await synced(second.socket, 2, joined);
    expect(await ask(second.socket, "select id from d.kept")).toBe("7");
    await ask(second.socket, "insert into d.kept values (8)");
    expect(await ask(first.socket, "select count(*) from d.kept")).toBe("2");

    await joined.stop("SIGKILL");
    const output = await run(mariadbd("copy", "--wsrep-cluster-address=gcomm://", "--wsrep-recover"), env);
    expect(output).toMatch(/Recovered position: [0-9a-f-]{36}:\d+/);
    for (const tool of ["mariadb-admin", "mariadb-dump", "mariadb-backup", "mariadb-slap"]) {
      expect(await run(["/bin/env", tool, "--version"], env)).toContain("MariaDB");
    }
    expect(await begun.stop("SIGTERM")).toBe(0);
  },
  BUILD_MS,
);

test.each(versionsOf("valkey"))(
  "Valkey %s speaks TLS alone, and a Sentinel watches it",
  async (version) => {
    const { start, run, volume } = await opened("valkey", version);
    const [port = 0, sentinel = 0] = await freePorts(2);
    const tls = ["--tls-cert-file", "/volume/tls.crt", "--tls-key-file", "/volume/tls.key"];
    const trust = [
      "--tls-ca-cert-file",
      "/volume/tls.crt",
      "--tls-auth-clients",
      "no",
      "--tls-replication",
      "yes",
    ];
    const only = (at: number) => ["--port", "0", "--tls-port", String(at), ...tls, ...trust];
    const env = { PATH: "/usr/bin:/bin" };
    const server = start(
      ["/bin/env", "valkey-server", ...only(port), "--requirepass", "secret", "--dir", "/volume/data"],
      env,
    );
    const ask = (at: number, ...command: string[]): Promise<string> => {
      const client = ["/bin/env", "valkey-cli", "--tls", "--cacert", "/volume/tls.crt", "-p", String(at)];
      return run([...client, ...command], at === port ? { ...env, VALKEYCLI_AUTH: "secret" } : env);
    };
    await waitFor("Valkey", 10_000, async () => (await ask(port, "ping")) === "PONG");
    expect(await ask(port, "role")).toMatch(/^master/);
    const watch = `sentinel monitor it 127.0.0.1 ${port} 1\nsentinel auth-pass it secret\n`;
    await runHere("sh", [
      "-c",
      'printf "%s" "$2" >"$1/other/s.conf"; chown 999 "$1/other/s.conf"',
      "w",
      volume,
      watch,
    ]);
    const watching = start(["/bin/env", "valkey-sentinel", "/volume/other/s.conf", ...only(sentinel)], env);
    await waitFor("Sentinel", 10_000, async () => {
      const address = await ask(sentinel, "sentinel", "get-primary-addr-by-name", "it");
      return address === `127.0.0.1\n${port}`;
    }).catch((error: Error) => {
      throw new Error(`${error.message}\n${watching.output()}`);
    });
    expect(await run(["/bin/sh", "-c", "echo probe | cat"], env)).toBe("probe");
    expect(await server.stop("SIGTERM")).toBe(0);
  },
  BUILD_MS,
);
