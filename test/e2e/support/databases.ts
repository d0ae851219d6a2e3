import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import type { V1Pod } from "@kubernetes/client-node";
import { expect } from "vitest";
import { type apiClient, retried, uniqueName } from "./api.ts";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { namespaceOf, stack } from "./stack.ts";

type Call = ReturnType<typeof apiClient>;

/** How a client reaches a database, by the API's answer. */
export interface Connection {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly username: string;
  readonly password: string;
  readonly connectionString: string;
}

export interface DatabaseProject {
  readonly id: string;
  readonly namespace: string;
  readonly connection: Connection;
}

/** Authority that the certificates of databases are checked with. */
export const databaseAuthority = (): string => readFileSync(stack.databaseCa, "utf8");

/** Who may connect from outside in tests: everybody. */
export const everybody = {
  ingress_white_list: [{ cidr: "0.0.0.0/0", description: "everybody" }],
  ingress_black_list: [],
};

/** The body of a creation. */
export function databaseProject(plan: string, config: Readonly<Record<string, unknown>>) {
  return {
    name: uniqueName(String(config.type_project)),
    plan,
    payment_mode: "hourly",
    config: {
      instances: 1,
      storage: { persistent: true, capacity: 1 },
      envs: [],
      network_access: everybody,
      ...config,
    },
  };
}

/** Creates a database through the API. @throws when the answer is not 201 with a connection */
export async function createDatabase(
  call: Call,
  body: object,
  organization: string = stack.organization,
): Promise<DatabaseProject> {
  interface Created {
    project_id: string;
    database?: { connection: Connection };
    managed_service?: { host: string; port: number; username: string; connection_string?: string };
  }
  const key = { "idempotency-key": randomUUID() };
  const { status, body: answer } = await retried(() => call<Created>("POST", "/v1/project", body, key));
  expect(status, JSON.stringify(answer)).toBe(201);
  const { project_id: id, database, managed_service } = answer.data as Created;
  const connection = managed_service?.connection_string
    ? connectionOf(managed_service.connection_string)
    : database?.connection;
  const place = { id, namespace: namespaceOf(organization) };
  return { ...place, connection: connection ?? (await renewedConnection(call, place)) };
}

/** An address that a busy machine assigns late is answered without: the password is then to be renewed. */
async function renewedConnection(call: Call, place: Place): Promise<Connection> {
  await untilReady(place);
  interface Renewed {
    connection: Connection;
    managed_service?: { connection_string: string };
  }
  const path = `/v1/project/${place.id}/database/credentials/renew`;
  const { status, body } = await call<Renewed>("POST", path);
  expect(status).toBe(200);
  const { connection, managed_service } = body.data as Renewed;
  return managed_service ? connectionOf(managed_service.connection_string) : connection;
}

/** A connection string taken apart. */
function connectionOf(connectionString: string): Connection {
  const { hostname: host, port, pathname, username, password } = new URL(connectionString);
  return { host, port: Number(port), database: pathname.slice(1), username, password, connectionString };
}

export interface DatabaseObject {
  spec: { instances?: number };
  status?: {
    phase?: string;
    observedGeneration?: number;
    /** A service's are its plan's. */
    desiredInstances?: number;
    readyInstances?: number;
    conditions?: { type: string; status: string; reason: string; message: string }[];
    database?: { primary?: string; runningVersion?: string; credentialsHash?: string };
  };
  metadata: { generation: number };
}

type Place = Pick<DatabaseProject, "id" | "namespace">;
/** Where the address is known, too. */
type Reachable = Place & Partial<Pick<DatabaseProject, "connection">>;

const objectOf = ({ id, namespace }: Place) => ({
  group: "slipway.dev",
  version: "v1alpha1",
  namespace,
  plural: "projects",
  name: id,
});

export const readDatabase = async (place: Place): Promise<DatabaseObject> =>
  (await cluster.custom.getNamespacedCustomObject(objectOf(place))) as DatabaseObject;

/** Changes a project past the API, by a JSON patch, as `kubectl patch` does. */
export const patchDatabase = (place: Place, patch: readonly object[]): Promise<unknown> =>
  cluster.custom.patchNamespacedCustomObject({ ...objectOf(place), body: patch });

/** The database's pods that are not leaving, by name. */
export async function podsOfDatabase({ id, namespace }: Place): Promise<V1Pod[]> {
  const labelSelector = `slipway.dev/project=${id}`;
  const { items } = await cluster.core.listNamespacedPod({ namespace, labelSelector });
  const instance = new RegExp(`^${id}-\\d+$`);
  return items
    .filter(({ metadata }) => instance.test(metadata?.name ?? "") && !metadata?.deletionTimestamp)
    .sort((a, b) => (a.metadata?.name ?? "").localeCompare(b.metadata?.name ?? ""));
}

/** How long Ready may be observed at every attempt while connections are refused: kube-proxy follows readiness some moments later. */
const OPEN_MS = 15_000;

/**
 * Waits until the status reports all instances ready and no change in progress, and, where `place` has a connection, its port is open.
 * A deleted primary's status may be reported for some moments more: a refusal counts only after 15 s of Ready without a break.
 * @throws the refusal, or what was not ready at the end
 */
export async function untilReady(place: Reachable, within = 360_000): Promise<DatabaseObject> {
  let readySince: number | undefined;
  const { project, refusal } = await eventually(
    async () => {
      const project = await readReady(place).catch((error: unknown) => {
        readySince = undefined;
        throw error;
      });
      readySince ??= performance.now();
      const refusal = place.connection && (await refusalOf(place.connection));
      const waited = performance.now() - readySince;
      if (refusal && waited < OPEN_MS) {
        throw refusal;
      }
      if (!refusal && waited > 1_000) {
        console.log(`port ${place.connection?.port} opened ${Math.round(waited)} ms after Ready`);
      }
      return { project, refusal };
    },
    { within },
  );
  if (refusal) {
    throw refusal;
  }
  return project;
}

/** @throws where an instance is not ready, by the status or by its kubelet, or a change is in progress */
async function readReady(place: Place): Promise<DatabaseObject> {
  const project = await readDatabase(place);
  const conditions = project.status?.conditions ?? [];
  const statusOf = (type: string) => conditions.find((one) => one.type === type)?.status;
  const instances = project.spec.instances ?? project.status?.desiredInstances ?? 1;
  expect(
    {
      phase: project.status?.phase,
      generation: project.status?.observedGeneration,
      ready: statusOf("Ready"),
      progressing: statusOf("Progressing"),
      instances: project.status?.readyInstances,
    },
    JSON.stringify(conditions.filter(({ message }) => message)),
  ).toEqual({
    phase: "running",
    generation: project.metadata.generation,
    ready: "True",
    progressing: "False",
    instances,
  });
  const pods = await podsOfDatabase(place);
  const ready = pods.filter(({ status }) =>
    status?.conditions?.some((one) => one.type === "Ready" && one.status === "True"),
  );
  expect({ pods: pods.length, ready: ready.length }).toEqual({ pods: instances, ready: instances });
  return project;
}

/** ECONNREFUSED, if that is the answer; whatever else becomes of a connection is its test's to assert. */
function refusalOf({ host, port }: Connection): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2_000 });
    const end = (error?: NodeJS.ErrnoException) => {
      socket.destroy();
      resolve(error?.code === "ECONNREFUSED" ? error : undefined);
    };
    socket.once("connect", () => end());
    socket.once("timeout", () => end());
    socket.once("error", end);
  });
}

/** Deletes one pod, waits until another one has its name, and until the database is whole again. */
export async function deletePod(place: Reachable, name: string): Promise<void> {
  const uid = (await cluster.core.readNamespacedPod({ namespace: place.namespace, name })).metadata?.uid;
  await cluster.core.deleteNamespacedPod({ namespace: place.namespace, name });
  await eventually(async () => {
    const pods = await podsOfDatabase(place);
    const again = pods.find(({ metadata }) => metadata?.name === name);
    expect(again?.metadata?.uid ?? uid).not.toBe(uid);
  });
  await untilReady(place);
}
