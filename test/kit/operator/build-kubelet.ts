/** A node for tests on a real apiserver: it runs nothing, reports the container states that tests set, and serves their logs. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Container as ContainerName, containers } from "@slipway/builder/contract";
import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { ensureAuthority, ensureCertificate } from "../../../hack/cluster/certificates.ts";
import type { BuildPod } from "../../../operator/src/builds/pod-state.ts";

const NODE = "n1";

interface Container {
  text: string;
  followers: ServerResponse[];
  startedAt: string;
  endedAt?: string;
  exitCode?: number;
  message?: string;
}

export class FakeKubelet {
  readonly #client: KubeClient;
  readonly #server: Server;
  readonly #folder: string;
  readonly #containers = new Map<string, Container>();

  private constructor(client: KubeClient, server: Server, folder: string) {
    this.#client = client;
    this.#server = server;
    this.#folder = folder;
  }

  static async start(client: KubeClient): Promise<FakeKubelet> {
    const folder = await mkdtemp(join(tmpdir(), "slipway-kubelet-"));
    const authority = await ensureAuthority(folder, "ca");
    const files = await ensureCertificate(folder, "kubelet", authority, {
      commonName: `system:node:${NODE}`,
      altNames: ["IP:127.0.0.1"],
    });
    const server = createServer({ cert: await readFile(files.cert), key: await readFile(files.key) });
    const kubelet = new FakeKubelet(client, server, folder);
    server.on("request", ({ url = "" }, answer) => kubelet.#answer(url, answer));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const status = {
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port: (server.address() as AddressInfo).port } },
    };
    await client.create<KubernetesObject>(resources.nodes, { metadata: { name: NODE } });
    await client.patch(resources.nodes, { name: NODE }, { status }, { subresource: "status" });
    return kubelet;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Takes a pod, as the scheduler and a node do. */
  async take({ metadata: { name, namespace } }: BuildPod): Promise<void> {
    const binding = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name, namespace },
      target: { apiVersion: "v1", kind: "Node", name: NODE },
    };
    await this.#client.create(resources.pods, binding, { subresource: "binding" });
  }

  /** A container starts, or continues: more of its output. */
  async run(pod: BuildPod, name: ContainerName, text: string): Promise<void> {
    const container = this.#container(pod.metadata.name, name);
    container.text += text;
    for (const each of container.followers) {
      each.write(text);
    }
    await this.#patchStatus(pod, { phase: "Running" });
  }

  /** A container ends, and with the last one, or with one that fails, the pod. */
  async end(pod: BuildPod, name: ContainerName, exitCode: number, result: object): Promise<void> {
    const container = this.#container(pod.metadata.name, name);
    container.exitCode = exitCode;
    container.endedAt = new Date().toISOString();
    container.message = `${JSON.stringify({ step: name, ...result })}\n`;
    for (const each of container.followers.splice(0)) {
      each.end();
    }
    const isLast = exitCode !== 0 || name === "push";
    await this.#patchStatus(pod, { phase: isLast ? (exitCode === 0 ? "Succeeded" : "Failed") : "Running" });
  }

  /** Pods that are to be stopped are deleted immediately. */
  async reap(): Promise<void> {
    for (const { metadata } of await this.#client.listAll<BuildPod>(resources.pods)) {
      if (!metadata.deletionTimestamp) {
        continue;
      }
      const { name, namespace } = metadata;
      await this.#client.delete(resources.pods, { name, namespace }, { gracePeriodSeconds: 0 });
    }
  }

  #container(pod: string, name: ContainerName): Container {
    const key = `${pod}/${name}`;
    const known = this.#containers.get(key) ?? {
      text: "",
      followers: [],
      startedAt: new Date().toISOString(),
    };
    this.#containers.set(key, known);
    return known;
  }

  #answer(url: string, answer: ServerResponse): void {
    const [, , , pod = "", rest = ""] = url.split("/");
    const [, query = ""] = rest.split("?");
    const name = containers.find((each) => rest.startsWith(`${each}?`) || rest === each) ?? "fetch";
    const container = this.#container(pod, name);
    answer.writeHead(200).write(container.text);
    answer.flushHeaders();
    if (query.includes("follow") && container.exitCode === undefined) {
      container.followers.push(answer);
    } else {
      answer.end();
    }
  }

  async #patchStatus({ metadata: { name, namespace } }: BuildPod, status: object): Promise<void> {
    const statuses = containers.flatMap((each) => {
      const container = this.#containers.get(`${name}/${each}`);
      if (!container) {
        return [];
      }
      const { exitCode, message, startedAt, endedAt: finishedAt } = container;
      const state =
        exitCode === undefined
          ? { running: { startedAt } }
          : { terminated: { exitCode, message, reason: "Completed", startedAt, finishedAt } };
      return [{ name: each, image: "i", imageID: "", restartCount: 0, ready: false, state }];
    });
    const patch = { ...status, containerStatuses: statuses };
    await this.#client.patch(
      resources.pods,
      { name, namespace },
      { status: patch },
      { subresource: "status" },
    );
  }
}
