import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type KubeClient, resources } from "@slipway/controller-runtime";
import {
  API_VERSION,
  annotations,
  GROUP,
  labels,
  organizationNamespace,
  type Project,
  plurals,
} from "@slipway/crds";
import { connectLedger, insertApiKey, insertOrganization, migrateToLatest } from "@slipway/ledger";
import { generateApiKey } from "../../api-server/src/auth/credentials.ts";
import { applyCrds } from "../kit/clusters/definitions.ts";
import type { EtcdClient } from "../kit/clusters/etcd-client.ts";

export const ORGANIZATION = "bench";

/** Makes the organization with a key that may read one project after the other. Returns the key. */
export async function prepareLedger(url: string): Promise<string> {
  const ledger = connectLedger({ url, applicationName: "bench" });
  try {
    await migrateToLatest(ledger);
    await insertOrganization(ledger, { id: ORGANIZATION, name: "Bench" });
    const { id, key, sha256 } = generateApiKey();
    const grants = [{ permission: "project.read", resource: "project:*" }];
    await insertApiKey(ledger, { id, organizationId: ORGANIZATION, prefix: "slw", sha256, grants });
    return key;
  } finally {
    await ledger.destroy();
  }
}

/** Adds organizations to a ledger. */
export async function addOrganizations(url: string, ids: readonly string[]): Promise<void> {
  const ledger = connectLedger({ url, applicationName: "bench" });
  try {
    for (const id of ids) {
      await insertOrganization(ledger, { id, name: id });
    }
  } finally {
    await ledger.destroy();
  }
}

/** Applies the CRDs and makes the organization's namespace. */
export async function prepareCluster(kube: KubeClient): Promise<void> {
  await applyCrds(kube);
  const name = organizationNamespace(ORGANIZATION);
  await kube.create(resources.namespaces, {
    metadata: { name, annotations: { [annotations.guarded]: "true" } },
  });
}

export const projectId = (index: number): string => `pbench${String(index).padStart(14, "0")}`;

/** The organization of a project, where there are several; the first one is {@link ORGANIZATION}. */
const organizationOf = (index: number, organizations: number): string =>
  index % organizations === 0 ? ORGANIZATION : `${ORGANIZATION}${index % organizations}`;

/** Makes projects `from` to `to`, as the operator would have left them: running, with a full status. */
export async function createRunningProjects(
  etcd: EtcdClient,
  from: number,
  to: number,
  organizations = 1,
): Promise<void> {
  // Two writes each through kube-apiserver would take minutes.
  for (let start = from; start < to; start += 1_000) {
    const indexes = Array.from({ length: Math.min(1_000, to - start) }, (_, offset) => start + offset);
    await etcd.put(
      indexes.map((index) => {
        const project = runningProject(index, organizationOf(index, organizations));
        const { namespace, name } = project.metadata;
        return [
          `/registry/${GROUP}/${plurals.Project}/${namespace}/${name}`,
          JSON.stringify(project),
        ] as const;
      }),
    );
  }
}

function runningProject(index: number, organization: string): Project {
  const id = projectId(index);
  // Every one at another moment, in no order.
  const now = new Date(Date.now() - ((index * 7_919) % 1_000_003) * 1_000).toISOString();
  const condition = (type: string, reason: string) => ({
    type,
    status: "True" as const,
    reason,
    message: "",
    lastTransitionTime: now,
    observedGeneration: 1,
  });
  const moment = `${now.slice(0, 19)}Z`;
  const fieldsV1 = {
    "f:spec": { "f:description": {}, "f:image": {}, "f:name": {}, "f:plan": {}, "f:type": {} },
  };
  return {
    apiVersion: API_VERSION,
    kind: "Project",
    metadata: {
      name: id,
      namespace: organizationNamespace(organization),
      uid: randomUUID(),
      generation: 1,
      creationTimestamp: moment,
      labels: { [labels.organization]: organization, [labels.project]: id },
      managedFields: [
        {
          apiVersion: API_VERSION,
          fieldsType: "FieldsV1",
          fieldsV1,
          manager: "bench",
          operation: "Update",
          time: moment,
        },
      ],
    },
    spec: {
      type: "http",
      name: `bench-${index}`,
      description: "A project to be read",
      plan: "basic",
      paymentMode: "hourly",
      exposure: "public",
      image: { url: "registry.example.com/team/app:1.2.3", isPublic: true },
      port: 8080,
      instances: 2,
      storage: { persistent: false, capacity: 1 },
      networkAccess: { ingressWhiteList: [{ cidr: "0.0.0.0/0", description: "everybody" }] },
    },
    status: {
      observedGeneration: 1,
      phase: "running",
      domain: `bench-${index}.apps.localhost`,
      currentInstances: 2,
      readyInstances: 2,
      maxCpu: "500m",
      maxMemory: "512Mi",
      conditions: [
        condition("Ready", "Ready"),
        condition("Accepted", "Accepted"),
        condition("WorkloadAvailable", "Available"),
        condition("DomainReady", "DomainAssigned"),
      ],
    },
  } as Project;
}

/** Resident memory of a process in MiB. */
export function residentMiB(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (!match) {
    throw new Error(`no memory of process ${pid}`);
  }
  return Number(match[1]) / 1024;
}
