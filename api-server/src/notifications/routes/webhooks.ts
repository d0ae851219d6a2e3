import { createWebhookBody, patchWebhookBody } from "@slipway/crds";
import type { Webhook } from "@slipway/ledger";
import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineRoute } from "../../http/route.ts";
import { newWebhookId } from "../../ids.ts";
import { isProvisioned, readNamespace } from "../../organizations/service.ts";
import { messageOnly, success } from "../../projects/routes/schemas.ts";
import type { Services } from "../../services.ts";
import { type AnyCall, organizationOf, receiverOf, webhookKind } from "../receiver-kinds.ts";
import { createSecret, deleteSecret, newSecret, replaceSecret } from "../secret.ts";
import { MAX_WEBHOOKS } from "../store.ts";
import { receiverUrl } from "../url.ts";
import { webhookSchema, webhookView, webhookWithSecretSchema } from "../view.ts";

export const TAGS = ["Webhooks"];
const NO_STORE = { "cache-control": "no-store" };
/** Each waits for the ledger, and some for the cluster. */
export const MAX_CONCURRENT = 16;

/** The organization's webhook of the path. @throws Failure 404, 503 */
export const webhookOf = (call: AnyCall, services: Pick<Services, "webhooks">): Promise<Webhook> =>
  receiverOf(webhookKind, call, services);

export const listWebhooksRoute = defineRoute({
  operationId: "listWebhooks",
  method: "GET",
  path: "/v1/organization/webhooks",
  summary: "List webhooks",
  description: "All of the organization, the oldest first, without their secrets.",
  tags: TAGS,
  responses: {
    200: {
      description: "All of them.",
      schema: success({ data: z.object({ webhooks: z.array(webhookSchema) }) }),
    },
  },
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { webhooks }) => {
    const found = await webhooks.list(organizationOf(call));
    return { status: 200, body: { status: "success", data: { webhooks: found.map(webhookView) } } };
  },
});

export const readWebhook = defineRoute({
  operationId: "readWebhook",
  method: "GET",
  path: "/v1/organization/webhooks/:webhookId",
  summary: "Read a webhook, without its secret",
  tags: TAGS,
  responses: { 200: { description: "The webhook.", schema: success({ data: webhookSchema }) } },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const data = webhookView(await webhookOf(call, services));
    return { status: 200, body: { status: "success", data } };
  },
});

export const createWebhookRoute = defineRoute({
  operationId: "createWebhook",
  method: "POST",
  path: "/v1/organization/webhooks",
  summary: "Create a webhook",
  description:
    "Deliveries are signed by the rules of Standard Webhooks. The answer is the only one with the secret.",
  tags: TAGS,
  body: createWebhookBody,
  responses: {
    201: { description: "Created.", schema: success({ message: z.string(), data: webhookWithSecretSchema }) },
  },
  refusals: [409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { kube, webhooks }) => {
    const { url, description = null, event_types, project_ids = null } = call.body;
    const organization_id = organizationOf(call);
    const receiver = receiverUrl(url);
    if (!isProvisioned(await readNamespace(kube, organization_id))) {
      throw failures.organizationRuntimeUnavailable();
    }
    const id = newWebhookId();
    const secret = newSecret();
    // The Secret first: nothing is ever due to a webhook without one. What is left of a creation that is cut short, the operator deletes.
    await createSecret(kube, organization_id, id, secret);
    const settings = { ...receiver, description, event_types: [...event_types], project_ids };
    const webhook = await webhooks.create({ id, organization_id, ...settings });
    if (webhook === undefined) {
      await deleteSecret(kube, organization_id, id);
      throw failures.webhookLimitReached(MAX_WEBHOOKS);
    }
    const data = { ...webhookView(webhook), secret };
    const body = { status: "success", message: "webhook created", data };
    return { status: 201, headers: NO_STORE, body };
  },
});

export const updateWebhookRoute = defineRoute({
  operationId: "updateWebhook",
  method: "PATCH",
  path: "/v1/organization/webhooks/:webhookId",
  summary: "Change a webhook",
  description: "What waits for it is sent to its new URL.",
  tags: TAGS,
  body: patchWebhookBody,
  responses: {
    200: { description: "Changed.", schema: success({ message: z.string(), data: webhookSchema }) },
  },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const { url, enabled, description, event_types, project_ids } = call.body;
    const { id, organization_id } = await webhookOf(call, services);
    const webhook = await services.webhooks.update(organization_id, id, {
      ...(url === undefined ? {} : receiverUrl(url)),
      ...(description === undefined ? {} : { description }),
      ...(event_types === undefined ? {} : { event_types: [...event_types] }),
      ...(project_ids === undefined ? {} : { project_ids }),
      ...(enabled === undefined ? {} : { isEnabled: enabled }),
    });
    if (webhook === undefined) {
      throw failures.webhookNotFound(id);
    }
    const body = { status: "success", message: "webhook updated", data: webhookView(webhook) };
    return { status: 200, body };
  },
});

export const deleteWebhookRoute = defineRoute({
  operationId: "deleteWebhook",
  method: "DELETE",
  path: "/v1/organization/webhooks/:webhookId",
  summary: "Delete a webhook with its deliveries",
  tags: TAGS,
  responses: { 200: { description: "Deleted.", schema: messageOnly } },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const { id, organization_id } = await webhookOf(call, services);
    await services.webhooks.delete(organization_id, id);
    await deleteSecret(services.kube, organization_id, id);
    return { status: 200, body: { status: "success", message: "webhook deleted" } };
  },
});

export const rotateWebhookSecret = defineRoute({
  operationId: "rotateWebhookSecret",
  method: "POST",
  path: "/v1/organization/webhooks/:webhookId/rotate-secret",
  summary: "Replace a webhook's secret",
  description:
    "The answer is the only one with the new secret. For a day deliveries are signed with the one before, too.",
  tags: TAGS,
  responses: {
    200: {
      description: "Replaced.",
      schema: success({ message: z.string(), data: webhookWithSecretSchema }),
    },
  },
  refusals: [404, 409],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, services) => {
    const webhook = await webhookOf(call, services);
    const secret = newSecret();
    await replaceSecret(services.kube, webhook.organization_id, webhook.id, secret, services.now());
    const data = { ...webhookView(webhook), secret };
    const body = { status: "success", message: "secret replaced", data };
    return { status: 200, headers: NO_STORE, body };
  },
});
