/** A process of the platform with permissions of its own. */
export type PlatformProcess = "operator" | "api-server" | "admin";

/** Users of the kube-apiserver that the installed chart's processes are. */
export const platformAccounts: Readonly<Record<string, PlatformProcess>> = {
  "system:serviceaccount:slipway-system:slipway-operator": "operator",
  "system:serviceaccount:slipway-system:slipway-api-server": "api-server",
  "system:serviceaccount:slipway-system:slipway-admin": "admin",
};
