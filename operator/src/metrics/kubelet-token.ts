/** Tokens of the kubelet reader: the only credential that is sent to nodes. */

import {
  customResource,
  type KubeClient,
  type KubernetesObject,
  resources,
  type TokenSource,
} from "@slipway/controller-runtime";
import type { Clock } from "@slipway/process";
import type { PolicyRule } from "../rbac.ts";

/** Seconds that a token is valid. */
const LIFETIME_SECONDS = 3_600;
/** A token is used up to so long before its end, in milliseconds. */
const RESERVE_MS = 600_000;
/** A refused token is replaced at most this often: a kubelet that refuses every one costs the apiserver little. */
const YOUNG_MS = 60_000;

const tokenRequest = customResource("authentication.k8s.io", "v1", "tokenrequests", "TokenRequest");

interface TokenRequest extends KubernetesObject {
  spec: { expirationSeconds: number };
  status?: { token: string; expirationTimestamp: string };
}

/** Tokens from the apiserver's TokenRequest, kept until shortly before they end. */
export function requestedTokens(
  client: Pick<KubeClient, "create">,
  namespace: string,
  clock: Clock,
): TokenSource {
  let kept: { token: Promise<string>; from: number; until: number } | undefined;
  const ask = (): Promise<string> => {
    const now = clock.monotonic();
    const entry = {
      from: now,
      until: now + LIFETIME_SECONDS * 1_000 - RESERVE_MS,
      token: requestToken(client, namespace).then(({ token, lifetimeMs }) => {
        entry.until = now + Math.max(lifetimeMs(clock.now()) - RESERVE_MS, 0);
        return token;
      }),
    };
    kept = entry;
    entry.token.catch(() => {
      if (kept === entry) {
        kept = undefined;
      }
    });
    return entry.token;
  };
  return {
    get: () => (kept !== undefined && clock.monotonic() < kept.until ? kept.token : ask()),
    invalidate() {
      if (kept !== undefined && clock.monotonic() - kept.from > YOUNG_MS) {
        kept = undefined;
      }
    },
  };
}

async function requestToken(
  client: Pick<KubeClient, "create">,
  namespace: string,
): Promise<{ token: string; lifetimeMs: (now: Date) => number }> {
  const body: TokenRequest = {
    apiVersion: `${tokenRequest.group}/${tokenRequest.version}`,
    kind: tokenRequest.kind,
    metadata: { name: KUBELET_READER, namespace },
    spec: { expirationSeconds: LIFETIME_SECONDS },
  };
  const answer = await client.create<TokenRequest>(resources.serviceAccounts, body, { subresource: "token" });
  const { token, expirationTimestamp } = answer.status ?? { token: "", expirationTimestamp: "" };
  if (token === "") {
    throw new Error("the apiserver gave no token for the kubelet reader");
  }
  return { token, lifetimeMs: (now) => Date.parse(expirationTimestamp) - now.getTime() };
}

// What reading runs' logs and samples needs. The chart's roles are generated from it.

/** Service account, in the operator's namespace, whose token the kubelets see. */
export const KUBELET_READER = "slipway-kubelet-reader";

/** Where kubelets listen, and whether a node is ready, so that the state of its pods is trusted. */
export const rules: PolicyRule[] = [
  { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "watch"] },
];

/** In organizations' namespaces alone: the end of a finished run's log. */
export const organizationRules: PolicyRule[] = [{ apiGroups: [""], resources: ["pods/log"], verbs: ["get"] }];

/** In the operator's own namespace: tokens of the reader. */
export const namespaceRules: PolicyRule[] = [
  {
    apiGroups: [""],
    resources: ["serviceaccounts/token"],
    resourceNames: [KUBELET_READER],
    verbs: ["create"],
  },
];

/**
 * All permissions of the reader. A node is less trusted than the operator: an attacker on it sees the tokens that its kubelet
 * is sent, so they are not the operator's own.
 */
export const kubeletReaderRules: PolicyRule[] = [
  { apiGroups: [""], resources: ["nodes/stats"], verbs: ["get"] },
];
