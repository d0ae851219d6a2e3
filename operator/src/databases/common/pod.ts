/** Containers of a database's pods, their environment and volumes: what is the same for every engine. Pure. */

import { environmentFields } from "../../workload/pod.ts";
import { since } from "../../workload/template-version.ts";
import type { Database } from "../database.ts";
import type { NamedPort } from "./services.ts";

/** Name of the engine's container in every pod. */
export const CONTAINER = "database";

/** Name of the volume that is kept. */
export const DATA = "data";

/** `PATH` of containers whose launcher unsets what they are not given. */
export const SYSTEM_PATH = envVar("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");

export function envVar(name: string, value: string) {
  return { name, value };
}

/** A key of the credentials Secret as an environment variable. */
export function fromCredentials({ names }: Pick<Database, "names">, name: string, key: string) {
  return { name, valueFrom: { secretKeyRef: { name: names.credentials, key } } };
}

/** A field of the pod as an environment variable. */
export function fromPod(name: string, fieldPath: string) {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

/** What differs between containers. */
export interface ContainerSpec {
  command: readonly string[];
  workingDir?: string;
  env: readonly { name: string }[];
  ports: readonly NamedPort[];
  startupProbe?: object;
  livenessProbe: object;
  readinessProbe?: object;
  lifecycle?: object;
  volumes: readonly MountedVolume[];
}

/** The engine's container, with the project's environment and resources. */
export function engineContainer(database: Database, spec: ContainerSpec) {
  const { resources } = database;
  return { ...containerFields(CONTAINER, database, spec), ...environmentFields(database), resources };
}

/** Another program of the engine's image. Its own small resources are beside what is sold. */
export function auxiliaryContainer(database: Database, name: string, resources: object, spec: ContainerSpec) {
  return { ...containerFields(name, database, spec), resources };
}

function containerFields(name: string, database: Database, { ports, volumes, ...spec }: ContainerSpec) {
  return {
    name,
    image: database.image.image,
    // Also where a tag names it: a database comes back while its registry is away, or was never in one.
    imagePullPolicy: "IfNotPresent",
    // The last lines of a container that fails are in its status.
    ...since(2, database, { terminationMessagePolicy: "FallbackToLogsOnError" }),
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      readOnlyRootFilesystem: true,
    },
    ...spec,
    ports: ports.map(({ name, port }) => ({ name, containerPort: port, protocol: "TCP" })),
    volumeMounts: volumes.map(({ mount }) => mount),
  };
}

/** A folder that is empty when the pod starts. @param limit of what memory it may take, for one in memory */
export function emptyDir(name: string, mountPath: string, options: { memory?: string } = {}) {
  const { memory } = options;
  return {
    volume: { name, emptyDir: memory ? { medium: "Memory", sizeLimit: memory } : {} },
    mount: { name, mountPath },
  };
}

/** The certificate, its key and its authority, readable for the engine's group. */
export function tlsVolume({ names }: Database, mountPath: string) {
  return {
    volume: { name: "tls", secret: { secretName: names.tls, defaultMode: 0o440 } },
    mount: { name: "tls", mountPath, readOnly: true },
  };
}

/** The ConfigMap with the engine's files. @param items which of its keys are which files; every key is one without it */
export function configVolume(
  { names }: Database,
  mountPath: string,
  { name = "config", configMap = names.config, items }: ConfigSource = {},
) {
  return {
    volume: { name, configMap: { name: configMap, ...(items ? { items } : {}) } },
    mount: { name, mountPath, readOnly: true },
  };
}

interface ConfigSource {
  name?: string;
  configMap?: string;
  items?: readonly { key: string; path: string }[];
}

/** Where the engine keeps its data. A plan may keep nothing, as an engine of its own kind never does. */
export function dataVolume({ storage }: Database, mountPath: string): MountedVolume {
  return storage ? { mount: { name: DATA, mountPath } } : emptyDir(DATA, mountPath);
}

/** A volume as a container sees it. That of a StatefulSet's claims is none of the pod's own. */
export interface MountedVolume {
  volume?: object;
  mount: { name: string; mountPath: string; readOnly?: boolean };
}
