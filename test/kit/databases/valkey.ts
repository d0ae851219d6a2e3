/** Real servers and Sentinels from the image's files, each with an address of loopback, as their pods would run them. */

import { chmod, chown, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExecResult, KubeClient, KubernetesObject, ObjectRef } from "@slipway/controller-runtime";
import { credentialKeys } from "@slipway/crds";
import { Redis } from "iovalkey";
import { buildImage } from "../../../hack/images/build.ts";
import { type InsideProcess, inside } from "../../../hack/images/inside.ts";
import { valkey, valkeyUser } from "../../../hack/images/valkey.ts";
import type { Database } from "../../../operator/src/databases/database.ts";
import type { LivePod } from "../../../operator/src/databases/driver.ts";
import { certify, makeAuthority } from "../../../operator/src/databases/tls/certificates.ts";
import { certificateNames } from "../../../operator/src/databases/tls/secret.ts";
import { files } from "../../../operator/src/databases/valkey/config.ts";
import {
  accounts,
  nodeAddress,
  nodeServices,
  paths,
  SENTINEL_PORT,
  sizeOf,
  VALKEY_PORT,
} from "../../../operator/src/databases/valkey/names.ts";
import { exampleCredentials, podOf } from "./examples.ts";

type Opened = Awaited<ReturnType<typeof inside>>;
type Role = "database" | "sentinel";

/** The user of a command. */
const passwords = {
  [accounts.admin]: exampleCredentials[credentialKeys.superuser],
  [accounts.monitor]: exampleCredentials[credentialKeys.monitor],
  [accounts.replication]: exampleCredentials[credentialKeys.replication],
  [exampleCredentials[credentialKeys.username] ?? ""]: exampleCredentials[credentialKeys.password],
};

/** The instances of a database, and what the operator's client would do with their pods. Needs root. */
export class TestMembers {
  readonly database: Database;
  readonly pods: LivePod[];
  readonly #opened: Opened;
  readonly #folder: string;
  /** The first three numbers of their addresses: drawn by lot, so that tests at the same time have others. */
  readonly #network = `127.${10 + random(240)}.${random(250)}`;
  #authority = "";
  readonly #running = new Map<string, InsideProcess>();

  private constructor(database: Database, opened: Opened, folder: string) {
    this.database = database;
    this.#opened = opened;
    this.#folder = folder;
    this.pods = Array.from({ length: sizeOf(database) }, (_, ordinal) => podOf(ordinal));
  }

  /** Opens the image, and makes a volume, the files of the ConfigMap and a certificate for each instance; starts none. */
  static async make(database: Database): Promise<TestMembers> {
    const opened = await inside(await buildImage(valkey()));
    const folder = await mkdtemp(join(tmpdir(), "slipway-members-"));
    await chmod(folder, 0o755);
    const members = new TestMembers(database, opened, folder);
    const names = certificateNames(database.id, database.namespace, undefined, nodeServices(database));
    const authority = await makeAuthority(new Date());
    const pair = await certify(authority, names, new Date());
    members.#authority = authority.certificate;
    for (const [ordinal, pod] of members.pods.entries()) {
      pod.status = { ...pod.status, podIP: members.#address(ordinal) };
      const etc = members.#path(ordinal, "etc");
      await cp(join(opened.root, "etc"), etc, { recursive: true });
      const lines = [`${members.#address(ordinal)} localhost`];
      lines.push(...members.pods.map((_, to) => `${members.#address(to)} ${nodeAddress(database, to)}`));
      await writeFile(join(etc, "hosts"), `${lines.join("\n")}\n`);
      await writeAll(join(etc, "valkey"), members.#files(ordinal));
      const tls = { "tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate };
      await writeAll(join(etc, "slipway/tls"), tls);
      for (const volume of ["data", "run", "sentinel"]) {
        await mkdir(members.#path(ordinal, volume));
        await chown(members.#path(ordinal, volume), valkeyUser, valkeyUser);
      }
    }
    return members;
  }

  /** PEM of who signs their certificates. */
  get authority(): string {
    return this.#authority;
  }

  /** Starts an instance, as its pod's containers are. */
  start(ordinal: number): void {
    this.startOne(ordinal, "database");
    if (this.pods.length > 1) {
      this.startOne(ordinal, "sentinel");
    }
  }

  startOne(ordinal: number, role: Role): void {
    const script = role === "database" ? "start.sh" : "sentinel.sh";
    const running = this.#run(
      ordinal,
      role,
      ["/bin/sh", `${paths.config}/${script}`],
      this.#environment(ordinal),
    );
    this.#running.set(`${role}-${ordinal}`, running);
  }

  /** As a crash does. A kubelet would take note. */
  async kill(ordinal: number, role: Role = "database"): Promise<void> {
    if (role === "database") {
      this.#setReady(ordinal, false);
    }
    await this.#end(`${role}-${ordinal}`, "SIGKILL");
  }

  /** What a container has written. */
  output(ordinal: number, role: Role = "database"): string {
    return this.#running.get(`${role}-${ordinal}`)?.output() ?? "";
  }

  /** Forgets the data of an instance, but not its Sentinel's state. */
  async emptyData(ordinal: number): Promise<void> {
    await rm(join(this.#path(ordinal, "data"), "valkey"), { recursive: true });
  }

  /** Queries a server as one of its accounts; its answer, an error too, as `valkey-cli` prints it. */
  ask(ordinal: number, user: string, ...command: string[]): Promise<string> {
    return this.#ask(ordinal, VALKEY_PORT, user, command);
  }

  /** Queries a Sentinel; its answer, as `valkey-cli` prints it. */
  askSentinel(ordinal: number, ...command: string[]): Promise<string> {
    return this.#ask(ordinal, SENTINEL_PORT, accounts.replication, command);
  }

  /** A session of the project's user, which ends when its connection does. It checks the certificate. */
  session(ordinal: number): Redis {
    const { username, password } = credentialKeys;
    return new Redis({
      host: this.#address(ordinal),
      port: VALKEY_PORT,
      username: exampleCredentials[username],
      password: exampleCredentials[password],
      tls: {
        ca: this.#authority,
        servername:
          this.pods.length > 1
            ? nodeAddress(this.database, ordinal)
            : `${this.database.id}.${this.database.namespace}.svc`,
      },
      retryStrategy: () => null,
    });
  }

  /** Runs a file of the ConfigMap as a probe does; its exit code. */
  async probe(ordinal: number, script: string): Promise<number> {
    const command = ["/bin/sh", `${paths.config}/${script}`];
    const code = (await this.#run(ordinal, "database", command, this.#environment(ordinal)).exited) ?? -1;
    if (script === "ready.sh") {
      this.#setReady(ordinal, code === 0);
    }
    return code;
  }

  /** A client of the apiserver for which the instances are pods. */
  client(): KubeClient {
    const find = (ref: ObjectRef) => this.pods.find(({ metadata: { name } }) => name === ref.name);
    const client = {
      podExec: async (ref: ObjectRef, options: { container: Role; command: string[]; stdin?: string }) => {
        const ordinal = this.pods.findIndex(({ metadata: { name } }) => name === ref.name);
        return this.#exec(ordinal, options.container, options.command, options.stdin ?? "");
      },
      patch: async (_: unknown, ref: ObjectRef, { metadata }: KubernetesObject) => {
        const pod = find(ref);
        if (pod) {
          pod.metadata.labels = { ...pod.metadata.labels, ...metadata?.labels };
        }
      },
    };
    return client as unknown as KubeClient;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((name) => this.#end(name, "SIGKILL")));
    await this.#opened.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #setReady(ordinal: number, ready: boolean): void {
    const pod = this.pods[ordinal];
    if (pod) {
      pod.status = { ...pod.status, conditions: [{ type: "Ready", status: ready ? "True" : "False" }] };
    }
  }

  async #end(name: string, signal: NodeJS.Signals): Promise<void> {
    const running = this.#running.get(name);
    this.#running.delete(name);
    await running?.stop(signal).catch(() => undefined);
  }

  async #exec(ordinal: number, role: Role, command: string[], stdin: string): Promise<ExecResult> {
    const { superuser, replication } = credentialKeys;
    const own = exampleCredentials[role === "database" ? superuser : replication] ?? "";
    const fed = ["/bin/sh", "-c", 'printf %s "$STDIN" | "$@"', "sh", ...command];
    const env = { ...this.#environment(ordinal), VALKEYCLI_AUTH: own, STDIN: stdin };
    const running = this.#run(ordinal, role, fed, env);
    const exitCode = (await running.exited) ?? -1;
    return { exitCode, stdout: running.output(), stderr: "" };
  }

  async #ask(ordinal: number, port: number, user: string, command: string[]): Promise<string> {
    const cli = ["/bin/env", "valkey-cli", "--tls", "--cacert", `${paths.tls}/ca.crt`, "-h", "localhost"];
    const as = port === VALKEY_PORT ? ["--user", user] : [];
    const env = { PATH: "/usr/bin:/bin", VALKEYCLI_AUTH: passwords[user] ?? "" };
    const running = this.#run(ordinal, "database", [...cli, "-p", String(port), ...as, ...command], env);
    await running.exited;
    return running.output().trim();
  }

  #run(ordinal: number, role: Role, command: string[], env: Record<string, string>): InsideProcess {
    const run = role === "database" ? "run" : "sentinel";
    const mounts = {
      etc: this.#path(ordinal, "etc"),
      data: this.#path(ordinal, "data"),
      "run/valkey": this.#path(ordinal, run),
    };
    return this.#opened.run(command, { uid: valkeyUser, mounts, env });
  }

  /** Of the containers, as the StatefulSet has it. */
  #environment(ordinal: number): Record<string, string> {
    const { username, password, superuser, replication, monitor } = credentialKeys;
    const of = (key: string) => exampleCredentials[key] ?? "";
    return {
      PATH: "/usr/bin:/bin",
      HOME: "/tmp",
      SLIPWAY_ADDRESS: nodeAddress(this.database, ordinal),
      SLIPWAY_PEERS:
        this.pods.length > 1 ? this.pods.map((_, to) => nodeAddress(this.database, to)).join(" ") : "",
      SLIPWAY_USERNAME: of(username),
      SLIPWAY_PASSWORD: of(password),
      SLIPWAY_ADMIN_PASSWORD: of(superuser),
      SLIPWAY_REPLICATION_PASSWORD: of(replication),
      SLIPWAY_MONITOR_PASSWORD: of(monitor),
    };
  }

  /** The ConfigMap's, for a server that has one address and not all of them. */
  #files(ordinal: number): Record<string, string> {
    const bound = (text: string) => `bind ${this.#address(ordinal)}\n${text}`;
    return Object.fromEntries(
      Object.entries(files(this.database)).map(([name, text]) => [
        name,
        name.endsWith(".conf") ? bound(text) : text,
      ]),
    );
  }

  #address(ordinal: number): string {
    return `${this.#network}.${ordinal + 1}`;
  }

  #path(ordinal: number, name: string): string {
    return join(this.#folder, `${ordinal}-${name}`);
  }
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
