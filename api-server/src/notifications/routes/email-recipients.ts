import { randomUUID } from "node:crypto";
import { confirmEmailRecipientBody, createEmailRecipientBody, patchEmailRecipientBody } from "@slipway/crds";
import type { ConfirmationOutcome, Webhook } from "@slipway/ledger";
import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineRoute } from "../../http/route.ts";
import { newEmailRecipientId } from "../../ids.ts";
import { messageOnly, success } from "../../projects/routes/schemas.ts";
import type { Services } from "../../services.ts";
import { newConfirmationCode, newUnsubscribeToken } from "../confirmation.ts";
import { emailRecipientSchema, emailRecipientView } from "../email-view.ts";
import { type AnyCall, emailKind, organizationOf, receiverOf } from "../receiver-kinds.ts";
import { MAX_EMAIL_RECIPIENTS } from "../store.ts";
import { MAX_CONCURRENT } from "./webhooks.ts";

export const EMAIL_TAGS = ["E-mail"];

/** The organization's recipient of the path. @throws Failure 404, 503 */
export const recipientOf = (call: AnyCall, services: Services): Promise<Webhook> =>
  receiverOf(emailKind, call, services);

/** @throws Failure 409 where the platform sends no mail */
export function requireEmail({ sendsEmail }: Pick<Services, "sendsEmail">): void {
  if (!sendsEmail) {
    throw failures.emailNotConfigured();
  }
}

export const listEmailRecipients = defineRoute({
  operationId: "listEmailRecipients",
  method: "GET",
  path: "/v1/organization/email-recipients",
  summary: "List recipients of e-mail",
  description: "All of the organization, the oldest first.",
  tags: EMAIL_TAGS,
  responses: {
    200: {
      description: "All of them.",
      schema: success({ data: z.object({ recipients: z.array(emailRecipientSchema) }) }),
    },
  },
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { webhooks }) => {
    const recipients = (await webhooks.list(organizationOf(call), "email")).map(emailRecipientView);
    return { status: 200, body: { status: "success", data: { recipients } } };
  },
});

export const readEmailRecipient = defineRoute({
  operationId: "readEmailRecipient",
  method: "GET",
  path: "/v1/organization/email-recipients/:recipientId",
  summary: "Read a recipient of e-mail",
  tags: EMAIL_TAGS,
  responses: { 200: { description: "The recipient.", schema: success({ data: emailRecipientSchema }) } },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const data = emailRecipientView(await recipientOf(call, services));
    return { status: 200, body: { status: "success", data } };
  },
});

export const createEmailRecipientRoute = defineRoute({
  operationId: "createEmailRecipient",
  method: "POST",
  path: "/v1/organization/email-recipients",
  summary: "Create a recipient of e-mail",
  description:
    "A code is sent to the address. Until it is confirmed with the code nothing else is sent there.",
  tags: EMAIL_TAGS,
  body: createEmailRecipientBody,
  responses: {
    201: { description: "Created.", schema: success({ message: z.string(), data: emailRecipientSchema }) },
  },
  refusals: [409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    requireEmail(services);
    const { email, event_types, project_ids = null } = call.body;
    const created = await services.webhooks.createRecipient(
      {
        id: newEmailRecipientId(),
        organization_id: organizationOf(call),
        email: email.toLowerCase(),
        event_types: [...event_types],
        project_ids,
        unsubscribe_token: newUnsubscribeToken(),
      },
      { code: newConfirmationCode(), key: randomUUID() },
    );
    if (created === "exists") {
      throw failures.emailRecipientExists();
    }
    if (created === "limited") {
      throw failures.emailConfirmationLimitReached();
    }
    if (created === "full") {
      throw failures.emailRecipientLimitReached(MAX_EMAIL_RECIPIENTS);
    }
    const body = { status: "success", message: "recipient created", data: emailRecipientView(created) };
    return { status: 201, body };
  },
});

export const updateEmailRecipient = defineRoute({
  operationId: "updateEmailRecipient",
  method: "PATCH",
  path: "/v1/organization/email-recipients/:recipientId",
  summary: "Change a recipient of e-mail",
  tags: EMAIL_TAGS,
  body: patchEmailRecipientBody,
  responses: {
    200: { description: "Changed.", schema: success({ message: z.string(), data: emailRecipientSchema }) },
  },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const { enabled, event_types, project_ids } = call.body;
    const { id, organization_id } = await recipientOf(call, services);
    const recipient = await services.webhooks.update(organization_id, id, {
      ...(event_types === undefined ? {} : { event_types: [...event_types] }),
      ...(project_ids === undefined ? {} : { project_ids }),
      ...(enabled === undefined ? {} : { isEnabled: enabled }),
    });
    if (recipient === undefined) {
      throw failures.emailRecipientNotFound(id);
    }
    const body = { status: "success", message: "recipient updated", data: emailRecipientView(recipient) };
    return { status: 200, body };
  },
});

export const deleteEmailRecipient = defineRoute({
  operationId: "deleteEmailRecipient",
  method: "DELETE",
  path: "/v1/organization/email-recipients/:recipientId",
  summary: "Delete a recipient of e-mail with its deliveries",
  tags: EMAIL_TAGS,
  responses: { 200: { description: "Deleted.", schema: messageOnly } },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const { id, organization_id } = await recipientOf(call, services);
    await services.webhooks.delete(organization_id, id);
    return { status: 200, body: { status: "success", message: "recipient deleted" } };
  },
});

/** @throws Failure 404, 409 unless a mail was queued */
function refuseUnlessRequested(outcome: ConfirmationOutcome | undefined, id: string): void {
  switch (outcome) {
    case "queued":
      return;
    case "confirmed":
      throw failures.emailRecipientConfirmed();
    case "disabled":
      throw failures.emailRecipientDisabled();
    case "limited":
      throw failures.emailConfirmationLimitReached();
    case "full":
      throw failures.webhookDeliveriesFull();
    case undefined:
      throw failures.emailRecipientNotFound(id);
  }
}

export const requestEmailConfirmation = defineRoute({
  operationId: "requestEmailConfirmation",
  method: "POST",
  path: "/v1/organization/email-recipients/:recipientId/send-confirmation",
  summary: "Send a new confirmation code to a recipient of e-mail",
  description: "The code before it confirms no more.",
  tags: EMAIL_TAGS,
  responses: { 202: { description: "It is sent in the background.", schema: messageOnly } },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    requireEmail(services);
    const { id, organization_id: organizationId } = await recipientOf(call, services);
    const request = { organizationId, id, code: newConfirmationCode(), key: randomUUID() };
    refuseUnlessRequested(await services.webhooks.requestConfirmation(request), id);
    return { status: 202, body: { status: "success", message: "confirmation queued" } };
  },
});

export const confirmEmailRecipientRoute = defineRoute({
  operationId: "confirmEmailRecipient",
  method: "POST",
  path: "/v1/organization/email-recipients/:recipientId/confirm",
  summary: "Confirm a recipient of e-mail with the code that was sent to it",
  tags: EMAIL_TAGS,
  body: confirmEmailRecipientBody,
  responses: {
    200: { description: "Confirmed.", schema: success({ message: z.string(), data: emailRecipientSchema }) },
  },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const { id, organization_id: organizationId } = await recipientOf(call, services);
    const confirmed = await services.webhooks.confirm({ organizationId, id, code: call.body.code });
    if (confirmed === undefined) {
      throw failures.emailRecipientNotFound(id);
    }
    if (confirmed === "wrong") {
      throw failures.emailConfirmationWrong();
    }
    if (confirmed === "expired") {
      throw failures.emailConfirmationExpired();
    }
    const data = emailRecipientView(confirmed);
    return { status: 200, body: { status: "success", message: "recipient confirmed", data } };
  },
});
