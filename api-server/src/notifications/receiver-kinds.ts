import { EMAIL_TEST_EVENT, type ReceiverKind, TEST_EVENT, type Webhook } from "@slipway/ledger";
import type { Principal } from "../auth/principal.ts";
import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";
import type { Call } from "../http/route.ts";
import type { Services } from "../services.ts";

/** What differs between webhooks and recipients of e-mail, which are listed, changed and delivered to in the same way. */
export interface KindOfReceiver {
  kind: ReceiverKind;
  /** The path parameter with its id. */
  parameter: "webhookId" | "recipientId";
  testEvent: typeof TEST_EVENT | typeof EMAIL_TEST_EVENT;
  notFound: (id: string) => Failure;
  disabled: () => Failure;
  deliveryNotFound: (id: string) => Failure;
}

export const webhookKind: KindOfReceiver = {
  kind: "webhook",
  parameter: "webhookId",
  testEvent: TEST_EVENT,
  notFound: failures.webhookNotFound,
  disabled: failures.webhookDisabled,
  deliveryNotFound: failures.webhookDeliveryNotFound,
};

export const emailKind: KindOfReceiver = {
  kind: "email",
  parameter: "recipientId",
  testEvent: EMAIL_TEST_EVENT,
  notFound: failures.emailRecipientNotFound,
  disabled: failures.emailRecipientDisabled,
  deliveryNotFound: failures.emailDeliveryNotFound,
};

export type AnyCall = Pick<Call<unknown, unknown, unknown>, "principal" | "request">;

export const organizationOf = ({ principal }: Pick<AnyCall, "principal">): string =>
  (principal as Principal).organizationId;

/** The organization's receiver of the path. @throws Failure 404, 503 */
export async function receiverOf(
  { kind, parameter, notFound }: KindOfReceiver,
  call: AnyCall,
  { webhooks }: Pick<Services, "webhooks">,
): Promise<Webhook> {
  const id = (call.request.params as Record<string, string>)[parameter] ?? "";
  const receiver = await webhooks.find(organizationOf(call), id, kind);
  if (receiver === undefined) {
    throw notFound(id);
  }
  return receiver;
}
