/** Real members from the image's files, each with an address of loopback, as their pods would run them. Needs root. */

import { chmod, chown, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExecResult, KubeClient, KubernetesObject, ObjectRef } from "@slipway/controller-runtime";
import { credentialKeys } from "@slipway/crds";
import mariadb from "mariadb";
import { buildImage } from "../../../hack/images/build.ts";
import { type InsideProcess, inside } from "../../../hack/images/inside.ts";
import { type MariadbMajor, mariadb as mariadbImage, mariadbUser } from "../../../hack/images/mariadb.ts";
import type { Database } from "../../../operator/src/databases/database.ts";
import type { LivePod } from "../../../operator/src/databases/driver.ts";
import { files } from "../../../operator/src/databases/mariadb/config.ts";
import { MARIADB_PORT, memberAddresses, paths } from "../../../operator/src/databases/mariadb/names.ts";
import { certify, makeAuthority } from "../../../operator/src/databases/tls/certificates.ts";
import { certificateNames } from "../../../operator/src/databases/tls/secret.ts";
import { exampleCredentials, podOf } from "./examples.ts";

type Opened = Awaited<ReturnType<typeof inside>>;

/** Whom a session is for. */
export interface Login {
  user?: string;
  password?: string;
  /** Without TLS, which servers refuse. */
  plain?: boolean;
}

/** The members of a group, and what the operator's client would do with their pods. */
export class TestGroup {
  readonly database: Database;
  readonly pods: LivePod[];
  readonly #opened: Opened;
  readonly #folder: string;
  /** The first three numbers of their addresses: drawn by lot, so that tests at the same time have others. */
  readonly #network = `127.${10 + random(240)}.${random(250)}`;
  #authority = "";
  #runs = 0;
  readonly #running = new Map<number, InsideProcess>();
  readonly #outputs = new Map<number, InsideProcess>();

  private constructor(database: Database, opened: Opened, folder: string) {
    this.database = database;
    this.#opened = opened;
    this.#folder = folder;
    this.pods = Array.from({ length: database.instances }, (_, ordinal) => podOf(ordinal, { ready: false }));
    for (const pod of this.pods) {
      setState(pod, {});
    }
  }

  /** Opens the image, and makes a volume, the files of the ConfigMap and a certificate for each member; starts none. */
  static async make(database: Database): Promise<TestGroup> {
    const opened = await inside(await buildImage(mariadbImage(database.version as MariadbMajor)));
    const folder = await mkdtemp(join(tmpdir(), "slipway-group-"));
    await chmod(folder, 0o755);
    const group = new TestGroup(database, opened, folder);
    const names = certificateNames(database.id, database.namespace);
    const authority = await makeAuthority(new Date());
    const pair = await certify(authority, names, new Date());
    group.#authority = authority.certificate;
    for (const ordinal of group.pods.keys()) {
      const etc = group.#path(ordinal, "etc");
      await cp(join(opened.root, "etc"), etc, { recursive: true });
      const lines = ["127.0.0.1 localhost"];
      lines.push(...memberAddresses(database).map((name, to) => `${group.address(to)} ${name}`));
      await writeFile(join(etc, "hosts"), `${lines.join("\n")}\n`);
      await writeAll(join(etc, "slipway/mariadb"), bound(files(database)));
      const tls = { "tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate };
      await writeAll(join(etc, "slipway/tls"), tls);
      for (const volume of ["volume", "run", "tmp"]) {
        await mkdir(group.#path(ordinal, volume));
        await chown(group.#path(ordinal, volume), mariadbUser, mariadbUser);
      }
    }
    return group;
  }

  address(ordinal: number): string {
    return `${this.#network}.${ordinal + 1}`;
  }

  /** Starts a member, as its pod's container is. */
  start(ordinal: number): void {
    const running = this.#run(ordinal, ["/bin/sh", `${paths.config}/start.sh`]);
    this.#running.set(ordinal, running);
    this.#outputs.set(ordinal, running);
    this.#runs += 1;
    const startedAt = new Date(Date.UTC(2026, 1, 1, 0, 0, this.#runs)).toISOString();
    const pod = this.pods[ordinal];
    if (pod) {
      setState(pod, { startedAt });
    }
  }

  /** As a crash of its node does, or an order that it gets. */
  async end(ordinal: number, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const running = this.#running.get(ordinal);
    this.#running.delete(ordinal);
    await running?.stop(signal).catch(() => undefined);
    const pod = this.pods[ordinal];
    if (pod) {
      setState(pod, {});
    }
  }

  /** What a member's container has written. */
  output(ordinal: number): string {
    return this.#outputs.get(ordinal)?.output() ?? "";
  }

  /** Runs the kubelet's probe, and reports its result. */
  async probe(): Promise<void> {
    for (const ordinal of this.#running.keys()) {
      const ready = (await this.#run(ordinal, ["/bin/sh", `${paths.config}/ready.sh`]).exited) === 0;
      const pod = this.pods[ordinal];
      if (pod?.status) {
        pod.status.conditions = [{ type: "Ready", status: ready ? "True" : "False" }];
      }
    }
  }

  /** Runs the kubelet's other probe; its exit code. */
  async alive(ordinal: number): Promise<number> {
    return (await this.#run(ordinal, ["/bin/sh", `${paths.config}/alive.sh`]).exited) ?? -1;
  }

  /** A session over the network, which checks the certificate. */
  async session(ordinal: number, { user, password, plain }: Login = {}) {
    const ssl = { ca: this.#authority, servername: memberAddresses(this.database)[ordinal] };
    const session = await mariadb.createConnection({
      host: this.address(ordinal),
      port: MARIADB_PORT,
      user: user ?? exampleCredentials[credentialKeys.username],
      password: password ?? exampleCredentials[credentialKeys.password],
      ...(plain ? {} : { ssl }),
      connectTimeout: 5_000,
      bigIntAsNumber: true,
    });
    // A lost connection is reported by the statement that waits for it.
    session.on("error", () => undefined);
    return session;
  }

  get authority(): string {
    return this.#authority;
  }

  /** A client of the apiserver for which the members are pods. */
  client(): KubeClient {
    const find = (ref: ObjectRef) => this.pods.findIndex(({ metadata: { name } }) => name === ref.name);
    const client = {
      podExec: (ref: ObjectRef, options: { command: string[]; stdin?: string }) =>
        this.exec(find(ref), options.command, options.stdin),
      patch: async (_: unknown, ref: ObjectRef, { metadata }: KubernetesObject) => {
        const pod = this.pods[find(ref)];
        if (pod) {
          pod.metadata.labels = { ...pod.metadata.labels, ...metadata?.labels };
        }
      },
    };
    return client as unknown as KubeClient;
  }

  /** Runs a command in a member's container. */
  async exec(ordinal: number, command: string[], stdin = ""): Promise<ExecResult> {
    const fed = ["/bin/sh", "-c", 'printf %s "$STDIN" | "$@"', "sh", ...command];
    const running = this.#run(ordinal, fed, { STDIN: stdin });
    const exitCode = (await running.exited) ?? -1;
    return { exitCode, stdout: running.output(), stderr: "" };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((ordinal) => this.end(ordinal, "SIGKILL")));
    await this.#opened.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #run(ordinal: number, command: string[], more: Record<string, string> = {}): InsideProcess {
    const mounts = {
      etc: this.#path(ordinal, "etc"),
      "var/lib/mysql": this.#path(ordinal, "volume"),
      "run/mysqld": this.#path(ordinal, "run"),
      tmp: this.#path(ordinal, "tmp"),
    };
    return this.#opened.run(command, {
      uid: mariadbUser,
      mounts,
      env: { ...this.#environment(ordinal), ...more },
    });
  }

  /** Of the container, as the StatefulSet has it. */
  #environment(ordinal: number): Record<string, string> {
    const addresses = memberAddresses(this.database);
    const own = {
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      HOME: "/tmp",
      SLIPWAY_MEMBER: `${this.database.id}-${ordinal}`,
      SLIPWAY_ADDRESS: this.address(ordinal),
      SLIPWAY_SELF: addresses[ordinal] ?? "",
      SLIPWAY_PEERS: addresses.join(" "),
      SLIPWAY_MONITOR_PASSWORD: exampleCredentials[credentialKeys.monitor] ?? "",
    };
    // What a project might set.
    return { ...own, MYSQL_TCP_PORT: "1", SLIPWAY_KEPT: Object.keys(own).join(" ") };
  }

  #path(ordinal: number, name: string): string {
    return join(this.#folder, `${ordinal}-${name}`);
  }
}

/** For a server that has one address and not all of them. */
function bound(contents: Record<string, string>): Record<string, string> {
  const file = contents["server.cnf"]?.replace("bind-address=*", "bind-address=@ADDRESS@") ?? "";
  return { ...contents, "server.cnf": file };
}

function setState(pod: LivePod, { startedAt }: { startedAt?: string }): void {
  const state = startedAt === undefined ? {} : { running: { startedAt } };
  pod.status = {
    phase: "Running",
    conditions: [{ type: "Ready", status: "False" }],
    containerStatuses: [{ name: "database", ready: false, state }],
  };
}

async function writeAll(folder: string, contents: Record<string, string>): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(contents)) {
    await writeFile(join(folder, name), text, { mode: 0o644 });
  }
}

function random(below: number): number {
  return Math.floor(Math.random() * below);
}
