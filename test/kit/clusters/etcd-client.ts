import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { mapConcurrently } from "../../../api-server/src/concurrency.ts";
import type { TestApiserver } from "../../../hack/cluster/apiserver.ts";

/** Most operations in one transaction: the default of etcd's `--max-txn-ops`. */
const MOST_OPERATIONS = 128;

const CONNECTIONS = 32;

const encode = (key: string): string => Buffer.from(key).toString("base64");

/** The keys of an etcd, over its JSON gateway. */
export class EtcdClient {
  readonly #url: string;
  readonly #agent: Agent;

  constructor({ url, authority, client }: TestApiserver["etcd"]) {
    this.#url = url;
    this.#agent = new Agent({
      ca: readFileSync(authority),
      cert: readFileSync(client.cert),
      key: readFileSync(client.key),
      keepAlive: true,
      maxSockets: CONNECTIONS,
    });
  }

  /** All keys that begin with `prefix`, which ends with a slash. */
  async keys(prefix: string): Promise<string[]> {
    const end = `${prefix.slice(0, -1)}0`;
    const { kvs = [] } = await this.#call<{ kvs?: { key: string }[] }>("kv/range", {
      key: encode(prefix),
      range_end: encode(end),
      keys_only: true,
    });
    return kvs.map(({ key }) => Buffer.from(key, "base64").toString());
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (let from = 0; from < keys.length; from += MOST_OPERATIONS) {
      const success = keys
        .slice(from, from + MOST_OPERATIONS)
        .map((key) => ({ request_delete_range: { key: encode(key) } }));
      await this.#call("kv/txn", { success });
    }
  }

  /**
   * Writes values as they are, past kube-apiserver: for objects that only have to be there. One at a time for each connection, not in
   * transactions: a watch that is resumed in the middle of a revision would miss the rest of it.
   */
  async put(values: readonly (readonly [key: string, value: string])[]): Promise<void> {
    await mapConcurrently(values, CONNECTIONS, ([key, value]) =>
      this.#call("kv/put", { key: encode(key), value: encode(value) }),
    );
  }

  #call<T>(path: string, body: object): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = request(`${this.#url}/v3/${path}`, { method: "POST", agent: this.#agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          if (response.statusCode === 200) {
            resolve(JSON.parse(text) as T);
          } else {
            reject(new Error(`etcd answered ${response.statusCode}: ${text}`));
          }
        });
      });
      call.on("error", reject);
      call.end(JSON.stringify(body));
    });
  }
}
