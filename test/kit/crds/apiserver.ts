import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import type { Crd } from "../../../crds/src/generate/crd.ts";
import type { Kind } from "../../../crds/src/kinds.ts";
import { GROUP, VERSION } from "../../../crds/src/names.ts";
import type { FixtureResource } from "./fixtures.ts";

interface Kubeconfig {
  clusters: { cluster: { server: string; "certificate-authority-data": string } }[];
  users: { user: { "client-certificate-data": string; "client-key-data": string } }[];
}

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

interface CrdCondition {
  type: string;
  status: string;
  message?: string;
}

/** An answer of the apiserver; `message` is that of a Status. */
export interface Answer {
  status: number;
  body: { message?: string; [key: string]: unknown };
}

/** A few calls on an apiserver with an admin kubeconfig, every write under strict field validation. */
export class TestClient {
  readonly #server: string;
  readonly #agent: Agent;
  /** By which it names resources. */
  readonly #version: string;

  constructor(kubeconfig: string, version: string = VERSION) {
    this.#version = version;
    const { clusters, users } = parse(readFileSync(kubeconfig, "utf8")) as Kubeconfig;
    const cluster = clusters[0]?.cluster;
    const user = users[0]?.user;
    if (cluster === undefined || user === undefined) {
      throw new Error("the kubeconfig names no cluster or user");
    }
    const decode = (data: string): Buffer => Buffer.from(data, "base64");
    this.#server = cluster.server;
    this.#agent = new Agent({
      ca: decode(cluster["certificate-authority-data"]),
      cert: decode(user["client-certificate-data"]),
      key: decode(user["client-key-data"]),
      keepAlive: true,
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  call(method: string, path: string, body?: unknown): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const headers = body === undefined ? {} : { "content-type": "application/json" };
      const call = request(`${this.#server}${path}`, { method, agent: this.#agent, headers }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as Answer["body"] }),
        );
        response.on("error", reject);
      });
      call.on("error", reject);
      call.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** Creates a definition and waits until it is served. @throws Error when it is refused or not structural */
  async installCrd(crd: Crd): Promise<void> {
    const created = await this.call("POST", `${CRDS}?fieldValidation=Strict`, crd);
    if (created.status !== 201) {
      throw new Error(`${crd.metadata.name}: ${created.body.message}`);
    }
    for (let tries = 0; tries < 100; tries += 1) {
      const { body } = await this.call("GET", `${CRDS}/${crd.metadata.name}`);
      const conditions = (body.status as { conditions?: CrdCondition[] } | undefined)?.conditions ?? [];
      const broken = conditions.find(
        ({ type, status }) => type === "NonStructuralSchema" && status === "True",
      );
      if (broken !== undefined) {
        throw new Error(`${crd.metadata.name}: ${broken.message}`);
      }
      if (conditions.some(({ type, status }) => type === "Established" && status === "True")) {
        return;
      }
      await sleep(100);
    }
    throw new Error(`${crd.metadata.name} was not established`);
  }

  create(kind: Kind, resource: FixtureResource, dryRun = false): Promise<Answer> {
    return this.call(
      "POST",
      `${this.#collection(kind)}?fieldValidation=Strict${dryRun ? "&dryRun=All" : ""}`,
      resource,
    );
  }

  read(kind: Kind, name: string): Promise<Answer> {
    return this.call("GET", `${this.#collection(kind)}/${name}`);
  }

  replace(
    kind: Kind,
    resource: FixtureResource,
    options: { dryRun?: boolean; status?: boolean } = {},
  ): Promise<Answer> {
    const path = `${this.#collection(kind)}/${resource.metadata.name}${options.status === true ? "/status" : ""}`;
    return this.call(
      "PUT",
      `${path}?fieldValidation=Strict${options.dryRun === true ? "&dryRun=All" : ""}`,
      resource,
    );
  }

  remove(kind: Kind, name: string): Promise<Answer> {
    return this.call("DELETE", `${this.#collection(kind)}/${name}`);
  }

  #collection({ plural, scope }: Kind): string {
    const place = scope === "Cluster" ? "" : "/namespaces/default";
    return `/apis/${GROUP}/${this.#version}${place}/${plural}`;
  }
}
