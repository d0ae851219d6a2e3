/** Puts together what samples databases. */

import {
  type ClusterConfig,
  type Controller,
  type KubeClient,
  Kubelets,
  type KubernetesObject,
  kubeletTrust,
  type Manager,
  type ObjectRef,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { type Catalog, credentialKeys, databaseNames, type Project } from "@slipway/crds";
import type { MetricSampleRow, StoredMetricSamples } from "@slipway/ledger";
import { Counter } from "prom-client";
import type { Config } from "../../config.ts";
import { requestedTokens } from "../../metrics/kubelet-token.ts";
import { kubeletAddress, type Node } from "../../metrics/nodes.ts";
import { CONTAINER } from "../common/pod.ts";
import { MARIADB_PORT, accounts as mariadbAccounts } from "../mariadb/names.ts";
import { POSTGRESQL_PORT, accounts as postgresqlAccounts } from "../postgresql/names.ts";
import type { Authority } from "../tls/authority.ts";
import { VALKEY_PORT, accounts as valkeyAccounts } from "../valkey/names.ts";
import { type FullVolumes, watchVolumes } from "./full-volumes.ts";
import { sampleMariadb } from "./mariadb-sampler.ts";
import { Outbox } from "./outbox.ts";
import { type Server, samplePostgresql } from "./postgresql-sampler.ts";
import { Resources } from "./resources.ts";
import { DatabaseSampler, type ReadEngine } from "./sampler.ts";
import type { Reading } from "./snapshot.ts";
import { createDatabasePods, type SampledType, type Target, targetsOf } from "./targets.ts";
import { sampleValkey } from "./valkey-sampler.ts";

/** Where samples are kept. */
export interface SampleLedger {
  record(rows: readonly MetricSampleRow[]): Promise<unknown>;
  list(): Promise<StoredMetricSamples[]>;
}

export interface DatabaseSamplesOptions {
  cluster: ClusterConfig | { url: string };
  config: Pick<Config, "namespace" | "kubelet">;
  ledger: SampleLedger;
  authority: Pick<Authority, "current">;
  catalog: () => Catalog;
  stores: { projects: Store<Project>; nodes: Store<Node> };
  /** Which volumes are full. */
  fullVolumes: FullVolumes;
  projects: Pick<Controller, "enqueue">;
}

/** How one engine is read. */
interface Reader {
  user: string;
  port: number;
  sample(server: Server, signal: AbortSignal): Promise<Reading>;
}

/** The engines that can be sampled, one line each. */
const READERS: Readonly<Partial<Record<SampledType, Reader>>> = {
  postgresql: { user: postgresqlAccounts.monitor, port: POSTGRESQL_PORT, sample: samplePostgresql },
  mariadb: { user: mariadbAccounts.monitor, port: MARIADB_PORT, sample: sampleMariadb },
  valkey: { user: valkeyAccounts.monitor, port: VALKEY_PORT, sample: sampleValkey },
};

/** Adds the store of databases' pods and the sampler, which runs while this process leads. */
export function addDatabaseSamples(manager: Manager, options: DatabaseSamplesOptions): void {
  const { client, clock, log, registry } = manager;
  const { authority, catalog, cluster, config, ledger, stores } = options;
  const pods = createDatabasePods(manager);
  const results = new Counter({
    name: "slipway_database_samples_total",
    help: "Samples of databases' instances, by engine and result.",
    labelNames: ["type", "result"],
    registers: [registry],
  });
  for (const type of Object.keys(READERS)) {
    for (const result of ["success", "error"]) {
      results.inc({ type, result }, 0);
    }
  }
  const monitors = new MonitorAccounts(client);
  const engines: Partial<Record<SampledType, ReadEngine>> = Object.fromEntries(
    Object.entries(READERS).map(([type, reader]) => [type, asMonitor(monitors, authority, reader)]),
  );
  const types = new Set(Object.keys(engines));
  const kubelets = new Kubelets({
    trust: kubeletTrust(config.kubelet, cluster),
    token: requestedTokens(client, config.namespace, clock),
    clock,
    userAgent: "slipway.dev/operator",
    container: CONTAINER,
  });
  const resources = new Resources({
    kubelets,
    addressOf: (name) => kubeletAddress(stores.nodes.get(undefined, name)),
    clock,
  });
  const sampler = new DatabaseSampler({
    targets: () => {
      const own = stores.projects.list().filter(({ metadata }) => manager.owns(metadata.namespace));
      const found = targetsOf(own, pods, catalog(), types);
      monitors.keep(new Set(found.map(({ projectUid }) => projectUid)));
      return found;
    },
    engines,
    resources,
    outbox: new Outbox({ write: (rows) => ledger.record(rows), clock, log }),
    stored: () => ledger.list(),
    clock,
    log,
    onResult: (type, result) => results.inc({ type, result }),
  });
  manager.addRunnable({ name: "database-samples", everyShard: true, run: (signal) => sampler.run(signal) });
  const onChange = (project: ObjectRef) => options.projects.enqueue(project);
  const watch = { pods, resources, full: options.fullVolumes, onChange, clock };
  manager.addRunnable({
    name: "database-volumes",
    everyShard: true,
    run: (signal) => watchVolumes(watch, signal),
  });
}

/** A server whose monitoring account is known by then. */
function asMonitor(
  monitors: MonitorAccounts,
  authority: Pick<Authority, "current">,
  { user, port, sample }: Reader,
): ReadEngine {
  return async (target, signal) => {
    const { certificate } = await authority.current();
    const account = await monitors.get(target, signal);
    const { container, ip, serverName } = target;
    try {
      return await sample(
        { host: ip, port, serverName, ca: certificate, user, ...account, container },
        signal,
      );
    } catch (error) {
      // The Secret may have another password by now.
      monitors.forget(target.projectUid);
      throw error;
    }
  };
}

export interface MonitorAccount {
  password: string;
  /** The project's own database. */
  database: string;
}

type Secret = KubernetesObject & { data?: Readonly<Record<string, string>> };

class MonitorAccounts {
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
