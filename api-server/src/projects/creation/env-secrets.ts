import { createHash } from "node:crypto";
import { type EnvironmentVariable, envSecretName } from "@slipway/crds";
import type { Usage } from "@slipway/ledger";

/** The content of one immutable Secret with environment variables. */
export interface EnvShard {
  /** `<project id>-env-<hash of the content>`. */
  name: string;
  /** Variables by name, in plain text. */
  stringData: Record<string, string>;
  /** Where each stood in the whole list, in the order of {@link byName}: Kubernetes does not keep an order. */
  positions: number[];
}

/** The order of names in a Secret. */
export const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);

/** Bytes of names and values in one Secret: below Kubernetes' 1 MiB, and etcd's request limit. */
const SHARD_BYTES = 900 * 1024;

const HASH_LENGTH = 12;

/**
 * Spreads variables over as few Secrets as possible. The order of the variables does not matter: the same set has
 * the same names, so a retry finds what it wrote before. No variables, no Secret.
 */
export function envShards(projectId: string, variables: readonly EnvironmentVariable[]): EnvShard[] {
  const sorted = variables.map((variable, position) => ({ ...variable, position })).sort(byName);
  const shards: (EnvironmentVariable & { position: number })[][] = [];
  let room = 0;
  for (const variable of sorted) {
    const bytes = Buffer.byteLength(variable.name) + Buffer.byteLength(variable.value);
    if (bytes > room) {
      shards.push([]);
      room = SHARD_BYTES;
    }
    shards.at(-1)?.push(variable);
    room -= bytes;
  }
  return shards.map((shard) => ({
    name: envSecretName(projectId, contentHash(projectId, shard)),
    stringData: Object.fromEntries(shard.map(({ name, value }) => [name, value])),
    positions: shard.map(({ position }) => position),
  }));
}

/** What these Secrets count for against the organization's bytes of variables. */
export function variablesUsage(shards: readonly EnvShard[]): Usage[] {
  return shards.map(({ name, stringData }) => ({
    kind: "variableBytes",
    name,
    amount: Object.entries(stringData).reduce(
      (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
      0,
    ),
  }));
}

/** The project id is hashed, too, so that equal content of two projects has different names. */
function contentHash(projectId: string, shard: readonly EnvironmentVariable[]): string {
  const content = JSON.stringify([projectId, ...shard.map(({ name, value }) => [name, value])]);
  return createHash("sha256").update(content).digest("hex").slice(0, HASH_LENGTH);
}
