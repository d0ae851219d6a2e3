/**
 * The Jobs of a backup, as pure functions. A pod has two containers: `engine`, of the engine's image, makes or loads a dump;
 * `agent`, of the platform's, uploads it to the store or downloads it. Neither has a token of the cluster, and
 * neither has a key to the store: of a volume there is one for each organization, and URLs are good for one backup.
 */

import type { OwnerReference } from "@slipway/controller-runtime";
import { databaseNames } from "@slipway/crds";
import type { DatabaseImage } from "../databases/settings.ts";
import type { DesiredObject } from "../desired.ts";
import { type Place, TASK_VARIABLE, type Task, WORK } from "./agent/protocol.ts";
import { CA_FILE, type EngineScripts, SCRATCH } from "./engines/engine.ts";
import { primaryHost, urlsSecret, VOLUME, type Work, workLabels } from "./names.ts";

/** Group of all that is stored on volumes, whichever engine's user writes it; also the user of the platform's image. */
const STORE_ID = 65_532;
/** Where the volume is. */
const VOLUME_PATH = "/backups";
const URLS_PATH = "/etc/slipway/urls";
/** The Secret contains more, which only the operator needs. */
const URLS_ITEM = { key: "urls.json", path: "urls.json" };
const AGENT = ["node", "/app/operator/src/backups/agent/main.ts"];
const TRIES = 3;
/** A Job that was never observed is deleted automatically. */
const KEPT_SECONDS = 86_400;

export const ENGINE_CONTAINER = "engine";
export const AGENT_CONTAINER = "agent";

/** Where a Job uploads a backup to, or downloads it from. */
export type JobPlace =
  | { kind: "volume"; file: string }
  /** Its Secret has the URLs. */
  | { kind: "urls"; partBytes: number };

export interface JobInput {
  work: Work;
  name: string;
  namespace: string;
  /** Backup that it is about. */
  backup: string;
  owner: OwnerReference;
  /** Of the platform. */
  agentImage: string;
  place: JobPlace;
  deadlineSeconds: number;
}

export interface EngineInput {
  scripts: EngineScripts;
  image: DatabaseImage;
  /** Database that is dumped or loaded into; a server of the pod's own without it. */
  projectId?: string;
  /** Of the restored data, in GB: how large a server's own folder may get. */
  scratchGb: number;
  /** Of what is stored, once it is known. */
  sha256?: string;
  storedBytes?: number;
}

/** A Job that dumps, loads or tries a backup. */
export function engineJob(input: JobInput, engine: EngineInput): DesiredObject {
  const { scripts, image } = engine;
  const { work } = input;
  const place = agentPlace(input.place);
  const { counts } = scripts;
  const task: Task =
    work === "dump"
      ? { do: "store", place, counts }
      : { do: "fetch", place, counts, sha256: engine.sha256 ?? "" };
  return job(input, {
    ids: { user: image.uid, group: image.gid },
    containers: [engineContainer(input, engine), agentContainer(input, task, true)],
    volumes: [
      { name: "work", emptyDir: {} },
      { name: "tmp", emptyDir: {} },
      ...(engine.projectId === undefined
        ? [{ name: "scratch", emptyDir: { sizeLimit: `${engine.scratchGb + 2}Gi` } }]
        : [certificate(engine.projectId, work === "load" && scripts.ownCertificate === true)]),
      ...placeVolumes(input),
    ],
  });
}

/** A Job that removes a backup's file. */
export function eraseJob(input: JobInput): DesiredObject {
  const place = agentPlace(input.place);
  if (place.kind !== "file") {
    throw new TypeError("only files are removed by a Job");
  }
  return job(input, {
    ids: { user: STORE_ID, group: STORE_ID },
    containers: [agentContainer(input, { do: "erase", place }, false)],
    volumes: [{ name: "tmp", emptyDir: {} }, ...placeVolumes(input)],
  });
}

interface PodParts {
  ids: { user: number; group: number };
  containers: object[];
  volumes: object[];
}

function job(input: JobInput, { ids, containers, volumes }: PodParts): DesiredObject {
  const { name, namespace, backup, owner, deadlineSeconds } = input;
  const labels = workLabels(backup, namespace);
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, namespace, labels, ownerReferences: [owner] },
    spec: {
      backoffLimit: TRIES - 1,
      activeDeadlineSeconds: deadlineSeconds,
      ttlSecondsAfterFinished: KEPT_SECONDS,
      // Never two pods concurrently: each begins with removing what the one before has left.
      podReplacementPolicy: "Failed",
      template: {
        metadata: { labels },
        spec: {
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          restartPolicy: "Never",
          terminationGracePeriodSeconds: 5,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: ids.user,
            runAsGroup: ids.group,
            fsGroup: STORE_ID,
            fsGroupChangePolicy: "OnRootMismatch",
            seccompProfile: { type: "RuntimeDefault" },
          },
          containers,
          volumes,
        },
      },
    },
  };
}

const confined = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  readOnlyRootFilesystem: true,
};

function engineContainer({ work, namespace }: JobInput, engine: EngineInput) {
  const { scripts, image, projectId, scratchGb } = engine;
  const script = work === "dump" ? scripts.dump : work === "load" ? scripts.load : scripts.verify;
  const env = projectId === undefined ? [] : connection(scripts, projectId, namespace, work === "dump");
  return {
    name: ENGINE_CONTAINER,
    image: image.image,
    imagePullPolicy: "IfNotPresent",
    command: ["/bin/sh", "-c", script],
    env: [...env, { name: "HOME", value: "/tmp" }],
    resources: {
      requests: { cpu: "10m", memory: "64Mi", "ephemeral-storage": "32Mi" },
      limits: {
        cpu: "1",
        memory: `${memoryMib(engine)}Mi`,
        "ephemeral-storage": `${scratchGb + 2}Gi`,
      },
    },
    securityContext: confined,
    volumeMounts: [
      { name: "work", mountPath: WORK },
      { name: "tmp", mountPath: "/tmp" },
      ...(projectId === undefined
        ? [{ name: "scratch", mountPath: SCRATCH }]
        : [{ name: "tls", mountPath: "/etc/slipway/tls", readOnly: true }]),
    ],
  };
}

/** Data in memory takes more room than a dump of it: for keys that compress well, up to eight times as much. */
function memoryMib({ scripts, storedBytes = 0 }: EngineInput): number {
  return scripts.inMemory ? 1_024 + Math.ceil((8 * storedBytes) / 2 ** 20) : 1_024;
}

function agentContainer(input: JobInput, task: Task, works: boolean) {
  const { place, work } = input;
  // A part is held in memory.
  const held = place.kind === "urls" && work === "dump" ? Math.ceil((2 * place.partBytes) / 2 ** 20) : 0;
  return {
    name: AGENT_CONTAINER,
    image: input.agentImage,
    imagePullPolicy: "IfNotPresent",
    command: AGENT,
    env: [{ name: TASK_VARIABLE, value: JSON.stringify(task) }],
    resources: {
      requests: { cpu: "10m", memory: "48Mi", "ephemeral-storage": "16Mi" },
      limits: { cpu: "1", memory: `${192 + held}Mi`, "ephemeral-storage": "1Gi" },
    },
    securityContext: confined,
    terminationMessagePolicy: "File",
    volumeMounts: [
      { name: "tmp", mountPath: "/tmp" },
      ...(works ? [{ name: "work", mountPath: WORK }] : []),
      place.kind === "volume"
        ? {
            name: "backups",
            mountPath: VOLUME_PATH,
            ...(work === "dump" || work === "erase" ? {} : { readOnly: true }),
          }
        : { name: "urls", mountPath: URLS_PATH, readOnly: true },
    ],
  };
}

function agentPlace(place: JobPlace): Place {
  return place.kind === "volume"
    ? { kind: "file", path: `${VOLUME_PATH}/${place.file}` }
    : { kind: "urls", file: `${URLS_PATH}/urls.json`, partBytes: place.partBytes };
}

function placeVolumes({ name, place }: JobInput) {
  return place.kind === "volume"
    ? [{ name: "backups", persistentVolumeClaim: { claimName: VOLUME } }]
    : [{ name: "urls", secret: { secretName: urlsSecret(name), defaultMode: 0o440, items: [URLS_ITEM] } }];
}

/** How the database is reached, and who its certificate is believed from. */
function connection(
  { credentials, dumpCredentials = {}, dumpVariables = {}, variables, host }: EngineScripts,
  projectId: string,
  namespace: string,
  dumps: boolean,
): object[] {
  const { credentials: secret } = databaseNames(projectId);
  const plain = dumps ? { ...variables, ...dumpVariables } : variables;
  const keys = Object.entries(dumps ? { ...credentials, ...dumpCredentials } : credentials);
  return [
    { name: host, value: primaryHost(projectId, namespace) },
    ...Object.entries(plain).map(([name, value]) => ({ name, value })),
    ...keys
      .filter(([name]) => !(name in plain))
      .map(([name, key]) => ({ name, valueFrom: { secretKeyRef: { name: secret, key } } })),
  ];
}

function certificate(projectId: string, whole: boolean) {
  const authority = CA_FILE.split("/").at(-1) ?? "";
  const keys = whole ? [authority, "tls.crt", "tls.key"] : [authority];
  const items = keys.map((key) => ({ key, path: key }));
  return {
    name: "tls",
    secret: { secretName: databaseNames(projectId).tls, defaultMode: 0o440, items },
  };
}
