/** One rule of a Kubernetes ClusterRole. */
export interface PolicyRule {
  apiGroups: readonly string[];
  resources: readonly string[];
  resourceNames?: readonly string[];
  verbs: readonly string[];
}

/** What the API server may do in the whole cluster; the chart's ClusterRole is generated from it. */
export const clusterRules: PolicyRule[] = [
  // Whether an organization's namespace exists and is provisioned.
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get"] },
  // Listed by a project's label, to see what it still has.
  {
    apiGroups: ["slipway.dev"],
    resources: ["domainclaims"],
    verbs: ["get", "list", "create", "patch", "delete"],
  },
  { apiGroups: ["slipway.dev"], resources: ["projects", "jobruns"], verbs: ["get", "list", "watch"] },
  // A delivery of a hook names the connection alone, not its organization.
  { apiGroups: ["slipway.dev"], resources: ["gitconnections"], verbs: ["list", "watch"] },
];

/**
 * What it may do in organizations' namespaces alone, where the operator binds this role as one of the namespace's guards.
 * It cannot read a Secret anywhere else.
 */
export const organizationRules: PolicyRule[] = [
  // Environment variables and registry credentials; read only to continue a creation that was cut short.
  { apiGroups: [""], resources: ["secrets"], verbs: ["get", "create", "patch", "delete"] },
  // Logs of applications.
  { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
  { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
  // Commands in instances. An exec over WebSocket is authorized as `get` before Kubernetes 1.35, and as `create` since.
  { apiGroups: [""], resources: ["pods/exec"], verbs: ["create", "get"] },
  // What an instance uses.
  { apiGroups: ["metrics.k8s.io"], resources: ["pods"], verbs: ["get"] },
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["create", "patch", "delete"] },
  // Requested runs, and cancellations. Only a run that the operator has not decided on is deleted.
  { apiGroups: ["slipway.dev"], resources: ["jobruns"], verbs: ["create", "patch", "delete"] },
  // Listed on request; an undelete is requested in the spec. What is kept of the project is in a Secret.
  { apiGroups: ["slipway.dev"], resources: ["deletedprojects"], verbs: ["get", "list", "patch"] },
  // Read live, on request.
  {
    apiGroups: ["slipway.dev"],
    resources: ["logdrains", "variablegroups"],
    verbs: ["get", "list", "create", "patch", "delete"],
  },
  {
    apiGroups: ["slipway.dev"],
    resources: ["backups"],
    verbs: ["get", "list", "create", "patch", "delete"],
  },
  {
    apiGroups: ["slipway.dev"],
    resources: ["gitconnections"],
    verbs: ["get", "list", "create", "patch", "delete"],
  },
  // The result of checking a credential is written to the status.
  { apiGroups: ["slipway.dev"], resources: ["gitconnections/status"], verbs: ["patch"] },
  // Requested builds; listed to find those that use a connection which is to be revoked.
  { apiGroups: ["slipway.dev"], resources: ["builds"], verbs: ["get", "list", "create"] },
];

/** What the admin command may do in the whole cluster: find namespaces, and vouch for a custom domain. */
export const adminClusterRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get"] },
  { apiGroups: ["slipway.dev"], resources: ["domainclaims"], verbs: ["get", "patch"] },
];

/** What it may do in organizations' namespaces: connect an account of GitHub, and compare what is billed of projects. It reads no Secret. */
export const adminOrganizationRules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["list"] },
  { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
  {
    apiGroups: ["slipway.dev"],
    resources: ["gitconnections"],
    verbs: ["get", "list", "create", "patch", "delete"],
  },
  { apiGroups: ["slipway.dev"], resources: ["gitconnections/status"], verbs: ["patch"] },
];
