import { createHash } from "node:crypto";
import type { EventType } from "@slipway/crds";

/** Events of which organizations are notified. Pure. */

/** Sent on request alone. */
export const TEST_EVENT = "webhook.test";
/** The same for recipients of e-mail. */
export const EMAIL_TEST_EVENT = "email.test";
/** Of a recipient of e-mail that has not confirmed. Its code is not in the payload, which the organization reads. */
export const CONFIRMATION_EVENT = "email.confirmation";

/** Something that happened once. */
export interface NotificationEvent {
  organizationId: string;
  /** What names it among the organization's events of its type, however often and by whichever process it is observed. */
  key: string;
  type: EventType | typeof TEST_EVENT | typeof EMAIL_TEST_EVENT | typeof CONFIRMATION_EVENT;
  projectId: string | null;
  occurredAt: Date;
  /** Members of the payload's `data`. */
  data: Readonly<Record<string, unknown>>;
  /** No other one of its type and project is sent to a webhook for so long. */
  quietSeconds?: number;
}

/** The id of an event, which every delivery of it has. */
export function eventIdOf({
  organizationId,
  type,
  key,
}: Pick<NotificationEvent, "organizationId" | "type" | "key">) {
  const hash = createHash("sha256")
    .update(JSON.stringify([organizationId, type, key]))
    .digest("hex");
  return `evt_${hash.slice(0, 32)}`;
}

/** What is sent, by the rules of Standard Webhooks. Pure. */
export function payloadOf({ type, occurredAt, organizationId, projectId, data }: NotificationEvent): string {
  const about = { organization_id: organizationId, ...(projectId === null ? {} : { project_id: projectId }) };
  return JSON.stringify({ type, timestamp: occurredAt.toISOString(), data: { ...about, ...data } });
}
