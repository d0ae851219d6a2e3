/** Passwords of the monitoring accounts: read when they are needed for the first time, and again when they do not serve. */

import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { credentialKeys, databaseNames } from "@slipway/crds";
import type { Target } from "./targets.ts";

export interface MonitorAccount {
  password: string;
  /** The project's own database. */
  database: string;
}

type Secret = KubernetesObject & { data?: Readonly<Record<string, string>> };

export class MonitorAccounts {
  readonly #client: KubeClient;
  readonly #known = new Map<string, MonitorAccount>();

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** @throws KubeError when the Secret cannot be read, Error when it has no such account */
  async get({ namespace, projectId, projectUid }: Target, signal: AbortSignal): Promise<MonitorAccount> {
    const known = this.#known.get(projectUid);
    if (known) {
      return known;
    }
    const name = databaseNames(projectId).credentials;
    const { data } = await this.#client.get<Secret>(resources.secrets, { namespace, name }, { signal });
    const text = (key: string) => Buffer.from(data?.[key] ?? "", "base64").toString("utf8");
    const account = { password: text(credentialKeys.monitor), database: text(credentialKeys.database) };
    if (account.password === "") {
      throw new Error("the Secret has no monitoring account");
    }
    this.#known.set(projectUid, account);
    return account;
  }

  /** What is known may be old, or of a project that is deleted. */
  forget(projectUid: string): void {
    this.#known.delete(projectUid);
  }

  /** Forgets every project but these. */
  keep(projectUids: ReadonlySet<string>): void {
    for (const uid of this.#known.keys()) {
      if (!projectUids.has(uid)) {
        this.#known.delete(uid);
      }
    }
  }
}
