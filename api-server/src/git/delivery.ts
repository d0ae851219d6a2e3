import type { GitConnection } from "@slipway/crds";
import {
  type Delivery,
  DeliveryError,
  type GitEvent,
  type Headers,
  isSigned,
  readDelivery,
} from "@slipway/git";
import { jsonShapeProblem } from "../http/json-body.ts";

/** Bytes of the largest delivery that is read: a push lists many commits. */
export const DELIVERY_LIMIT = 1024 * 1024;

/** What identifies a delivery. */
export interface DeliveryName {
  organizationId: string;
  connectionId: string;
  deliveryId: string;
}

/** What accepts deliveries: the cluster, and the queue from which they are processed. */
export interface DeliveryPorts {
  /** The organization's connection with this id, as it is now. */
  findConnection(organizationId: string, id: string): Promise<GitConnection | undefined>;
  /** The secret that its deliveries are signed with. */
  hookSecret(connection: GitConnection): Promise<string>;
  /**
   * Queues it until it is processed, unless it is a duplicate.
   * @throws Failure 503 when too many of the connection or its organization wait, or the ledger is unavailable
   */
  queue(delivery: DeliveryName, event: GitEvent): Promise<"queued" | "duplicate">;
}

/**
 * What became of a delivery. `unsigned` is also the outcome for an unknown or revoked connection: without a signature the caller does not learn which
 * connections there are.
 */
export type DeliveryOutcome =
  | { kind: "taken"; event: GitEvent }
  /** It starts nothing, whatever a project's settings. */
  | { kind: "ignored" }
  | { kind: "duplicate" }
  | { kind: "unsigned" }
  | { kind: "invalid"; reason: string };

/**
 * Accepts one delivery. Nothing of the body is read before its signature is verified.
 * @param organizationId the owner of the connection
 * @param body as it came, before any parsing
 * @throws what the ports throw: then it is not kept, and the sender may send it again
 */
export async function acceptDelivery(
  { organizationId, connectionId }: Omit<DeliveryName, "deliveryId">,
  headers: Headers,
  body: Buffer,
  ports: DeliveryPorts,
): Promise<DeliveryOutcome> {
  const connection = await ports.findConnection(organizationId, connectionId);
  if (connection === undefined || connection.spec.revokedAt !== undefined) {
    return { kind: "unsigned" };
  }
  if (!isSigned(await ports.hookSecret(connection), body, headers)) {
    return { kind: "unsigned" };
  }

  const read = parsed(headers, body);
  if ("reason" in read) {
    return { kind: "invalid", reason: read.reason };
  }
  const { id: deliveryId, event } = read;
  if (event === undefined) {
    return { kind: "ignored" };
  }
  const name: DeliveryName = { organizationId, connectionId, deliveryId };
  const queued = await ports.queue(name, event);
  return queued === "duplicate" ? { kind: "duplicate" } : { kind: "taken", event };
}

function parsed(headers: Headers, body: Buffer): Delivery | { reason: string } {
  const { "content-type": type } = headers;
  if (typeof type !== "string" || !/^application\/json\s*(;|$)/i.test(type)) {
    return { reason: "deliveries are taken as application/json alone" };
  }
  const text = body.toString("utf8");
  const problem = jsonShapeProblem(text);
  if (problem !== undefined) {
    return { reason: problem };
  }
  try {
    return readDelivery(headers, JSON.parse(text));
  } catch (error) {
    if (error instanceof DeliveryError) {
      return { reason: error.message };
    }
    if (error instanceof SyntaxError) {
      return { reason: "the body is not valid JSON" };
    }
    throw error;
  }
}
