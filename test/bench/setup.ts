import { readFileSync } from "node:fs";
import { customResource, type KubeClient, resources } from "@slipway/controller-runtime";
import {
  API_VERSION,
  annotations,
  GROUP,
  labels,
  organizationNamespace,
  type Project,
  plurals,
  VERSION,
} from "@slipway/crds";
import { connectLedger, insertApiKey, insertOrganization, migrateToLatest } from "@slipway/ledger";
import { generateApiKey } from "../../api-server/src/auth/credentials.ts";
import { applyCrds } from "../kit/clusters/definitions.ts";

const projectResource = customResource(GROUP, VERSION, plurals.Project, "Project");

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

/** Applies the CRDs and makes the organization's namespace. */
export async function prepareCluster(kube: KubeClient): Promise<void> {
  await applyCrds(kube);
  const name = organizationNamespace(ORGANIZATION);
  await kube.create(resources.namespaces, {
    metadata: { name, annotations: { [annotations.guarded]: "true" } },
  });
}

/** Makes projects `from` to `to`, 20 at a time, as the operator would have left them: running, with a full status. */
export async function createRunningProjects(kube: KubeClient, from: number, to: number): Promise<void> {
  for (let start = from; start < to; start += 20) {
    const batch = Array.from({ length: Math.min(20, to - start) }, (_, index) => start + index);
    await Promise.all(batch.map(async (index) => setRunning(kube, await createProject(kube, index))));
  }
}

export const projectId = (index: number): string => `pbench${String(index).padStart(14, "0")}`;

function createProject(kube: KubeClient, index: number): Promise<Project> {
  const id = projectId(index);
  return kube.create<Project>(projectResource, {
    apiVersion: API_VERSION,
    kind: "Project",
    metadata: {
      name: id,
      namespace: organizationNamespace(ORGANIZATION),
      labels: { [labels.organization]: ORGANIZATION, [labels.project]: id },
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
  });
}

async function setRunning(kube: KubeClient, project: Project): Promise<void> {
  const now = new Date().toISOString();
  const condition = (type: string, reason: string) => ({
    type,
    status: "True" as const,
    reason,
    message: "",
    lastTransitionTime: now,
    observedGeneration: 1,
  });
  project.status = {
    observedGeneration: 1,
    phase: "running",
    domain: `${project.spec.name}.apps.localhost`,
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
  };
  await kube.updateStatus(projectResource, project);
}

/** Resident memory of a process in MiB. */
export function residentMiB(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (!match) {
    throw new Error(`no memory of process ${pid}`);
  }
  return Number(match[1]) / 1024;
}
