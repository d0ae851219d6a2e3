/** The part of Kubernetes' ObjectMeta that Slipway reads. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: {
    apiVersion: string;
    kind: string;
    name: string;
    uid: string;
    controller?: boolean;
    blockOwnerDeletion?: boolean;
  }[];
}

/** A custom resource of ours as it is in the cluster. */
export interface Resource<Kind extends string, Spec, Status> {
  apiVersion: "slipway.dev/v1alpha1";
  kind: Kind;
  metadata: ObjectMeta;
  spec: Spec;
  status?: Status;
}
