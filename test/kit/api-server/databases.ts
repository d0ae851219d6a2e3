import { setTimeout as sleep } from "node:timers/promises";
import { isConflict, isNotFound, type KubeClient, resources } from "@slipway/controller-runtime";
import {
  credentialKeys,
  credentialsHash,
  databaseNames,
  type EngineName,
  isDatabaseType,
  type Project,
  type ProjectStatus,
} from "@slipway/crds";
import { decodeCredentials, readCredentialsSecret } from "../../../api-server/src/databases/connection.ts";
import { projectResource } from "../../../api-server/src/resources.ts";

const everybody = [{ cidr: "0.0.0.0/0" }];

const VERSIONS: Record<EngineName, string> = {
  postgresql: "17",
  mariadb: "11",
  clickhouse: "26.8.6.5",
  valkey: "9.1.1",
};

/** What a database's spec has, and what it has not of the harness's example. */
export function databaseSpec(type: EngineName, change: Partial<Project["spec"]> = {}): Project["spec"] {
  const common = { type, name: `my-${type}`, paymentMode: "hourly", version: VERSIONS[type] } as const;
  const none = { exposure: undefined, image: undefined, port: undefined };
  if (type === "valkey") {
    const instances = undefined;
    const storage = { persistent: true, capacity: 5 };
    const service = { plan: "db-premium", profile: "key_value", networkAccess: undefined } as const;
    return { ...none, ...common, ...service, instances, storage, ...change };
  }
  return {
    ...none,
    ...common,
    plan: type === "clickhouse" ? "analytics-basic" : "db-premium",
    instances: type === "mariadb" ? 3 : 1,
    storage: { persistent: true, capacity: 10 },
    networkAccess: { ingressWhiteList: everybody },
    ...change,
  };
}

/** A body of `POST /v1/project` that every rule allows; `config` is merged. */
export function databaseBody(
  type: EngineName,
  change: Record<string, unknown> = {},
  config: Record<string, unknown> = {},
) {
  const { name, plan, paymentMode, instances, storage, profile, version } = databaseSpec(type);
  const own =
    type === "valkey"
      ? { profile }
      : { instances, envs: [], network_access: { ingress_white_list: everybody } };
  return {
    name,
    plan,
    payment_mode: paymentMode,
    ...change,
    config: { type_project: type, version, storage, ...own, ...config } as Record<string, unknown>,
  };
}

export const HOST = "db.example.com";
export const PORT = 31_000;

type DatabaseStatus = NonNullable<ProjectStatus["database"]>;

/** The status that the operator reports for a database that serves. */
export function databaseStatus(
  { metadata: { name: id, namespace }, spec }: Project,
  change: Partial<DatabaseStatus> = {},
): DatabaseStatus {
  return {
    engine: spec.type,
    version: spec.version,
    primary: `${id}-0`,
    host: HOST,
    port: PORT,
    inside: { host: `${id}.${namespace}.svc`, port: 5432 },
    name: spec.type === "valkey" ? "0" : "app",
    username: "app",
    ...change,
  };
}

/** Plays the operator in tests without one: reports the addresses of databases, and accepts their passwords. */
export function startDatabaseOperator(kube: KubeClient): { stop: () => Promise<void> } {
  const stopped = new AbortController();
  const run = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      for (const project of await kube.listAll<Project>(projectResource)) {
        if (isDatabaseType(project.spec.type)) {
          await reconcile(kube, project);
        }
      }
      await sleep(20);
    }
  };
  const running = run();
  return {
    stop: async () => {
      stopped.abort();
      await running;
    },
  };
}

async function reconcile(kube: KubeClient, project: Project): Promise<void> {
  const { namespace, name } = project.metadata;
  const secret = await readCredentialsSecret(kube, project.metadata);
  if (!secret) {
    return;
  }
  const credentials = decodeCredentials(secret);
  const hash = credentialsHash(credentials);
  try {
    if (project.status?.database?.credentialsHash !== hash) {
      const status = { database: databaseStatus(project, { credentialsHash: hash }) };
      await kube.patch(projectResource, { namespace, name }, { status }, { subresource: "status" });
    }
    if (credentials[credentialKeys.previousPassword] !== undefined) {
      const { resourceVersion } = secret.metadata ?? {};
      const data = { [credentialKeys.previousPassword]: null };
      const ref = { namespace, name: databaseNames(name).credentials };
      await kube.patch(resources.secrets, ref, { metadata: { resourceVersion }, data });
    }
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) {
      throw error;
    }
  }
}
