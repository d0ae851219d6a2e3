/**
 * The policies of an organization's namespace, as a pure function of the organization and the platform's settings.
 * Every one of them is in place before the namespace counts as provisioned and before any tenant's pod starts in it.
 */

import {
  LOG_DRAINS,
  LOG_DRAINS_ROLE,
  type OrganizationLimits,
  PLATFORM_BACKUP,
  PLATFORM_BACKUP_ROLE,
} from "@slipway/crds";
import type { DesiredObject } from "../../desired.ts";
import { outsideWorld } from "../cluster-addresses.ts";

/** What the policies depend on in addition to the organization's id. */
export interface NamespacePolicySettings {
  /** Namespace of the cluster's DNS pods, which carry `k8s-app: kube-dns`. */
  dnsNamespace: string;
  /** CIDRs that no tenant reaches: pods of others, Services (with them the apiserver) and nodes. */
  egressDeniedCidrs: readonly string[];
  /** Namespace of Slipway itself, where the API server's service account is. */
  systemNamespace: string;
  /** Namespace of the ingress controller's pods, when cert-manager certifies custom domains; absent when nobody does. */
  acmeIngressNamespace?: string;
  /** How databases are reached from outside the cluster; not at all unless given. */
  databasesOutside?: "NodePort" | "LoadBalancer" | "None";
  /** Whether the platform is backed up on a schedule: the job that does it reads Secrets and Services of the namespace. */
  backsUpPlatform?: boolean;
  /** Whether log drains are delivered: the process that does it reads their Secrets. */
  deliversLogDrains?: boolean;
  /** Ceilings of one organization, as the catalog has them now. */
  limits: OrganizationLimits;
}

/** What the API server may do in an organization's namespace, and nowhere else; the chart creates this ClusterRole. */
export const API_SERVER_ROLE = "slipway-api-server-organization";

/** What the admin command may do there; the chart creates this one, too. */
export const ADMIN_ROLE = "slipway-admin-organization";

/** What the operator itself may do there alone; the chart creates this one, too. */
export const OPERATOR_ROLE = "slipway-operator-organization";

/** Names of the policies inside the namespace. A name starting with `slipway-` can be no project's id. */
export const policyNames = {
  quota: "slipway-quota",
  limits: "slipway-limits",
  defaultDeny: "slipway-default-deny",
  sameNamespace: "slipway-same-namespace",
  egress: "slipway-egress",
  apiServer: "slipway-api-server",
  admin: "slipway-admin",
  operator: "slipway-operator",
  platformBackup: PLATFORM_BACKUP,
  logDrains: LOG_DRAINS,
  acmeSolver: "slipway-acme-solver",
} as const;

/**
 * The policies inside the namespace, in the order in which they are applied: the processes' rights first, without which none
 * of the others can be written; then closed, then opened.
 */
export function desiredNamespacePolicies(
  organizationId: string,
  namespace: string,
  settings: NamespacePolicySettings,
): DesiredObject[] {
  const object = (apiVersion: string, kind: string, name: string, spec: object): DesiredObject => ({
    apiVersion,
    kind,
    metadata: { name, namespace, labels: organizationLabels(organizationId) },
    spec,
  });
  const policy = (name: string, spec: object) => object("networking.k8s.io/v1", "NetworkPolicy", name, spec);
  // The processes write Secrets and Projects of this namespace: they have no such right over the whole cluster.
  const binding = (name: string, role: string): DesiredObject => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name, namespace, labels: organizationLabels(organizationId) },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
    // A binding has the name of the service account that it is for.
    subjects: [{ kind: "ServiceAccount", name, namespace: settings.systemNamespace }],
  });
  return [
    binding(policyNames.operator, OPERATOR_ROLE),
    binding(policyNames.apiServer, API_SERVER_ROLE),
    binding(policyNames.admin, ADMIN_ROLE),
    ...(settings.backsUpPlatform ? [binding(policyNames.platformBackup, PLATFORM_BACKUP_ROLE)] : []),
    ...(settings.deliversLogDrains ? [binding(policyNames.logDrains, LOG_DRAINS_ROLE)] : []),
    policy(policyNames.defaultDeny, { podSelector: {}, policyTypes: ["Ingress", "Egress"] }),
    policy(policyNames.sameNamespace, {
      podSelector: {},
      policyTypes: ["Ingress", "Egress"],
      ingress: [{ from: [{ podSelector: {} }] }],
      egress: [{ to: [{ podSelector: {} }] }],
    }),
    policy(policyNames.egress, {
      podSelector: {},
      policyTypes: ["Egress"],
      egress: [
        {
          to: [
            {
              namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": settings.dnsNamespace } },
              podSelector: { matchLabels: { "k8s-app": "kube-dns" } },
            },
          ],
          ports: [
            { port: 53, protocol: "UDP" },
            { port: 53, protocol: "TCP" },
          ],
        },
        ...outsideWorldRule(settings.egressDeniedCidrs),
      ],
    }),
    ...acmeSolverSpecs(settings).map((spec) => policy(policyNames.acmeSolver, spec)),
    object("v1", "LimitRange", policyNames.limits, { limits: [CONTAINER_LIMITS] }),
    object("v1", "ResourceQuota", policyNames.quota, { hard: hardLimits(settings) }),
  ];
}

/** Labels of the policies of an organization's namespace, and of the namespace. */
export function organizationLabels(organizationId: string): Record<string, string> {
  return { "app.kubernetes.io/managed-by": "slipway", "slipway.dev/organization": organizationId };
}

/**
 * Allows the ingress to reach the pod that answers an HTTP-01 challenge: cert-manager runs it for the project's Ingress, with
 * this label and port, while a certificate is being issued.
 */
function acmeSolverSpecs({ acmeIngressNamespace: name }: NamespacePolicySettings): object[] {
  if (name === undefined) {
    return [];
  }
  const from = [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } } }];
  const podSelector = { matchLabels: { "acme.cert-manager.io/http01-solver": "true" } };
  return [
    { podSelector, policyTypes: ["Ingress"], ingress: [{ from, ports: [{ port: 8089, protocol: "TCP" }] }] },
  ];
}

/** An egress rule without peers would allow everything, so no open family means no rule. */
function outsideWorldRule(denied: readonly string[]): object[] {
  const blocks = outsideWorld(denied);
  return blocks.length === 0 ? [] : [{ to: blocks.map((ipBlock) => ({ ipBlock })) }];
}

/** For containers that name no resources: without these, the quota below would refuse them. */
const CONTAINER_LIMITS = {
  type: "Container",
  default: { cpu: "500m", memory: "512Mi", "ephemeral-storage": "1Gi" },
  defaultRequest: { cpu: "10m", memory: "32Mi", "ephemeral-storage": "32Mi" },
};

/**
 * A bound against runaway controllers, not a plan limit: wide enough for the surge pods of all rollouts together, for a run
 * of every job, and for the Jobs that wait for admission, or for their charge while the ledger is unavailable: an hour of
 * 1000 jobs that run every minute. Pods that have ended do not count. JobRuns are not counted at all: an admitted run
 * must not be without one. Node ports and load balancers bypass the ingress: there are none but those of databases.
 */
export function hardLimits({
  databasesOutside = "None",
  limits,
}: NamespacePolicySettings): Record<string, string> {
  return {
    ...QUOTA,
    // The ceilings that /v1 has, too: here they are counted for kubectl, and one of two concurrent creations is refused.
    "count/projects.slipway.dev": String(limits.projects),
    "count/gitconnections.slipway.dev": String(limits.gitConnections),
    "count/variablegroups.slipway.dev": String(limits.variableGroups),
    "count/logdrains.slipway.dev": String(limits.logDrains),
    "count/backups.slipway.dev": String(limits.backups),
    "services.nodeports": databasesOutside === "None" ? "0" : DATABASES,
    "services.loadbalancers": databasesOutside === "LoadBalancer" ? DATABASES : "0",
  };
}

/** As many as StatefulSets. */
const DATABASES = "500";

const QUOTA = {
  pods: "2000",
  "requests.cpu": "200",
  "requests.memory": "800Gi",
  "requests.ephemeral-storage": "20Ti",
  // What pods may use together, where plans reserve less than they sell.
  "limits.cpu": "2000",
  "limits.memory": "2Ti",
  "limits.ephemeral-storage": "20Ti",
  "requests.storage": "20Ti",
  persistentvolumeclaims: "500",
  services: "1000",
  secrets: "4000",
  configmaps: "4000",
  "count/deployments.apps": "1000",
  "count/statefulsets.apps": DATABASES,
  "count/cronjobs.batch": "1000",
  "count/jobs.batch": "60000",
  "count/ingresses.networking.k8s.io": "1000",
};
