import type { KubeClient } from "@slipway/controller-runtime";

/** Where Slipway is installed. */
export interface Installation {
  /** Of a person who administers the cluster. */
  client: KubeClient;
  namespace: string;
}
