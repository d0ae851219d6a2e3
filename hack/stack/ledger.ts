import type { Cluster } from "../cluster/cluster.ts";
import type { DatabaseImageSource } from "../images/databases.ts";
import { ledgerMajor } from "../images/postgres.ts";
import { UserError } from "../lib/steps.ts";
import { deliver } from "./images.ts";

/**
 * The image that the members of a ledger with two instances run from; undefined where values of the chart ask for no such ledger.
 * It is of the major version of the ledger's own image, so that a single instance's volume can become that of the first one.
 * @throws UserError when there is none among the images of databases
 */
export function memberImage(
  values: Record<string, unknown>,
  images: readonly DatabaseImageSource[],
): DatabaseImageSource | undefined {
  const { embedded } = (values.ledger ?? {}) as { embedded?: { instances?: number } };
  if ((embedded?.instances ?? 1) < 2) {
    return undefined;
  }
  const image = images.find(({ engine, version }) => engine === "postgresql" && version === ledgerMajor);
  if (!image) {
    throw new UserError(
      `a ledger with two instances needs an image of PostgreSQL ${ledgerMajor}, which is not here`,
    );
  }
  return image;
}

/** Delivers it. @returns what the chart's `images` gets for it */
export async function deliverMemberImage(
  cluster: Cluster,
  image: DatabaseImageSource | undefined,
): Promise<{ ledgerPatroni?: string }> {
  if (!image) {
    return {};
  }
  const built = await image.build();
  return {
    ledgerPatroni: await deliver(cluster, { name: "the ledger's members", deliver: "import" }, built),
  };
}
