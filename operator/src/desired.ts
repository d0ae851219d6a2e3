import type { KubernetesObject, ObjectMeta } from "@slipway/controller-runtime";

/** An object as a reconciler wants it: what it leaves out belongs to others. */
export interface DesiredObject extends KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta & { name: string };
  spec?: object;
  /** Of a RoleBinding. */
  roleRef?: object;
  subjects?: readonly object[];
  /** Of a Role. */
  rules?: readonly object[];
  /** Of a ServiceAccount. */
  automountServiceAccountToken?: boolean;
  /** Of an EndpointSlice. */
  addressType?: string;
  endpoints?: readonly object[];
  ports?: readonly object[];
  /** Of a ConfigMap. */
  data?: Readonly<Record<string, string>>;
}
