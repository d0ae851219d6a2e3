import type { Builds } from "../cluster/builds/index.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { renderEnv } from "../lib/env-file.ts";
import { writeFileAtomic } from "../lib/files.ts";
import { stackFile } from "../lib/paths.ts";
import { domainZone } from "./chart.ts";
import { measureClientCidr } from "./client-address.ts";
import { writeDatabaseAuthority } from "./databases.ts";
import type { StackImages } from "./images.ts";
import type { Organization } from "./organization.ts";
import { podsOf } from "./ready-pods.ts";

/** What docs/stack.md promises of the stack file; a key without a value is left out of it. */
export interface Stack {
  url: string | undefined;
  organization: Organization;
  ingressUrl: string | undefined;
  metricsUrls: string[];
  images: StackImages;
  clientCidr: string | undefined;
  /** File of the authority that signs the databases' certificates. */
  databaseCa: string | undefined;
  /** The stack's own Git server, a user of it, and the file of the authority that signs its certificate. */
  git: Builds["git"] | undefined;
  kubeconfig: string;
}

/** The lines of `.slipway/stack.env`. */
export function renderStack(stack: Stack): string {
  return renderEnv({
    SLIPWAY_URL: stack.url,
    SLIPWAY_ORGANIZATION_ID: stack.organization.organization_id,
    SLIPWAY_API_KEY: stack.organization.api_key,
    SLIPWAY_OWNER_TOKEN: stack.organization.owner_token,
    SLIPWAY_INGRESS_URL: stack.ingressUrl,
    SLIPWAY_DOMAIN_ZONE: domainZone,
    SLIPWAY_METRICS_URLS: stack.metricsUrls.length > 0 ? stack.metricsUrls.join(",") : undefined,
    SLIPWAY_IMAGE_HTTP: stack.images.sampleHttp,
    SLIPWAY_IMAGE_HTTP_V2: stack.images.sampleHttpV2,
    SLIPWAY_IMAGE_JOB: stack.images.sampleJob,
    SLIPWAY_CLIENT_CIDR: stack.clientCidr,
    SLIPWAY_DATABASE_CA: stack.databaseCa,
    SLIPWAY_GIT_URL: stack.git?.url,
    SLIPWAY_GIT_USERNAME: stack.git?.username,
    SLIPWAY_GIT_TOKEN: stack.git?.token,
    SLIPWAY_GIT_CA: stack.git?.caFile,
    KUBECONFIG: stack.kubeconfig,
  });
}

/** Reads what only the cluster knows, and writes the stack file, mode 0600. */
export async function writeStackFile(
  cluster: Cluster,
  images: StackImages,
  organization: Organization,
  git: Builds["git"] | undefined,
): Promise<Stack> {
  const metricsUrls: string[] = [];
  if (cluster.podsReachable) {
    for (const deployment of ["slipway-api-server", "slipway-operator"]) {
      for (const pod of await podsOf(cluster.kubectl, deployment)) {
        metricsUrls.push(`http://${pod.ip}:9090/metrics`);
      }
    }
  }
  const stack: Stack = {
    url: cluster.apiUrl,
    organization,
    ingressUrl: cluster.ingressUrl,
    metricsUrls,
    images,
    clientCidr: cluster.ingressUrl ? await measureClientCidr(cluster.kubectl, cluster.ingressUrl) : undefined,
    databaseCa: cluster.databaseHost ? await writeDatabaseAuthority(cluster) : undefined,
    git,
    kubeconfig: cluster.kubeconfig,
  };
  await writeFileAtomic(stackFile, renderStack(stack));
  return stack;
}
