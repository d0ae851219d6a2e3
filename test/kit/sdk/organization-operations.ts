import { absent, type Operation, type OperationId, type Subjects } from "./operation.ts";

const group = ({ group: groupId }: Subjects) => ({ params: { path: { groupId } } });
const webhook = ({ webhook: webhookId }: Subjects) => ({ params: { path: { webhookId } } });
const recipient = ({ recipient: recipientId }: Subjects) => ({ params: { path: { recipientId } } });
const drain = { params: { path: { drainId: absent.drain } } };
const invoice = { params: { path: { invoiceId: absent.invoice } } };

/** Operations on what an organization has beside projects, in an order in which their calls are possible. */
export const organizationOperations = {
  listVariableGroups: { answer: "200", call: (all) => all.slipway.GET("/v1/organization/variable-groups") },
  createVariableGroup: {
    answer: "201",
    call: async (all) => {
      const body = { name: "Mail server", variables: [{ name: "SMTP_HOST", value: "mail.example.com" }] };
      const { data } = await all.slipway.POST("/v1/organization/variable-groups", { body });
      all.group = data.id;
    },
  },
  readVariableGroup: {
    answer: "200",
    call: (all) => all.slipway.GET("/v1/organization/variable-groups/{groupId}", group(all)),
  },
  updateVariableGroup: {
    answer: "200",
    call: (all) =>
      all.slipway.PATCH("/v1/organization/variable-groups/{groupId}", {
        ...group(all),
        body: { variables: [{ name: "SMTP_HOST", value: "smtp.example.com" }] },
      }),
  },
  deleteVariableGroup: {
    answer: "200",
    call: (all) => all.slipway.DELETE("/v1/organization/variable-groups/{groupId}", group(all)),
  },
  listWebhooks: { answer: "200", call: (all) => all.slipway.GET("/v1/organization/webhooks") },
  createWebhook: {
    answer: "201",
    call: async (all) => {
      const body = { url: "https://hooks.example.com/slipway", event_types: ["deployment.failed" as const] };
      const { data } = await all.slipway.POST("/v1/organization/webhooks", { body });
      all.webhook = data.id;
    },
  },
  readWebhook: {
    answer: "200",
    call: (all) => all.slipway.GET("/v1/organization/webhooks/{webhookId}", webhook(all)),
  },
  updateWebhook: {
    answer: "200",
    call: (all) =>
      all.slipway.PATCH("/v1/organization/webhooks/{webhookId}", {
        ...webhook(all),
        body: { enabled: true },
      }),
  },
  rotateWebhookSecret: {
    answer: "200",
    call: (all) => all.slipway.POST("/v1/organization/webhooks/{webhookId}/rotate-secret", webhook(all)),
  },
  testWebhook: {
    answer: "202",
    call: (all) => all.slipway.POST("/v1/organization/webhooks/{webhookId}/test", webhook(all)),
  },
  listWebhookDeliveries: {
    answer: "200",
    call: (all) => all.slipway.GET("/v1/organization/webhooks/{webhookId}/deliveries", webhook(all)),
  },
  redeliverWebhook: {
    answer: "404 WEBHOOK_DELIVERY_NOT_FOUND",
    call: ({ slipway, webhook: webhookId }) =>
      slipway.POST("/v1/organization/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver", {
        params: { path: { webhookId, deliveryId: absent.delivery } },
      }),
  },
  deleteWebhook: {
    answer: "200",
    call: (all) => all.slipway.DELETE("/v1/organization/webhooks/{webhookId}", webhook(all)),
  },
  listEmailRecipients: { answer: "200", call: (all) => all.slipway.GET("/v1/organization/email-recipients") },
  createEmailRecipient: {
    answer: "201",
    call: async (all) => {
      const body = { email: "on-call@example.com", event_types: ["deployment.failed" as const] };
      const { data } = await all.slipway.POST("/v1/organization/email-recipients", { body });
      all.recipient = data.id;
    },
  },
  readEmailRecipient: {
    answer: "200",
    call: (all) => all.slipway.GET("/v1/organization/email-recipients/{recipientId}", recipient(all)),
  },
  updateEmailRecipient: {
    answer: "200",
    call: (all) =>
      all.slipway.PATCH("/v1/organization/email-recipients/{recipientId}", {
        ...recipient(all),
        body: { enabled: true },
      }),
  },
  requestEmailConfirmation: {
    answer: "202",
    call: (all) =>
      all.slipway.POST("/v1/organization/email-recipients/{recipientId}/send-confirmation", recipient(all)),
  },
  confirmEmailRecipient: {
    answer: "409 EMAIL_CONFIRMATION_WRONG",
    call: (all) =>
      all.slipway.POST("/v1/organization/email-recipients/{recipientId}/confirm", {
        ...recipient(all),
        body: { code: "7KQ2-M9XD" },
      }),
  },
  testEmailRecipient: {
    answer: "409 EMAIL_RECIPIENT_UNCONFIRMED",
    call: (all) => all.slipway.POST("/v1/organization/email-recipients/{recipientId}/test", recipient(all)),
  },
  listEmailDeliveries: {
    answer: "200",
    call: (all) =>
      all.slipway.GET("/v1/organization/email-recipients/{recipientId}/deliveries", recipient(all)),
  },
  redeliverEmail: {
    answer: "404 EMAIL_DELIVERY_NOT_FOUND",
    call: ({ slipway, recipient: recipientId }) =>
      slipway.POST("/v1/organization/email-recipients/{recipientId}/deliveries/{deliveryId}/redeliver", {
        params: { path: { recipientId, deliveryId: absent.delivery } },
      }),
  },
  deleteEmailRecipient: {
    answer: "200",
    call: (all) => all.slipway.DELETE("/v1/organization/email-recipients/{recipientId}", recipient(all)),
  },
  listLogDrains: { answer: "200", call: (all) => all.slipway.GET("/v1/organization/log-drains") },
  createLogDrain: {
    answer: "503 ANALYTICS_NOT_CONFIGURED",
    call: (all) => {
      const body = { name: "Archive", syslog: { host: "logs.example.com", port: 6514 } };
      return all.slipway.POST("/v1/organization/log-drains", { body });
    },
  },
  readLogDrain: {
    answer: "404 LOG_DRAIN_NOT_FOUND",
    call: (all) => all.slipway.GET("/v1/organization/log-drains/{drainId}", drain),
  },
  updateLogDrain: {
    answer: "404 LOG_DRAIN_NOT_FOUND",
    call: (all) =>
      all.slipway.PATCH("/v1/organization/log-drains/{drainId}", {
        ...drain,
        body: { name: "Archives" },
      }),
  },
  deleteLogDrain: {
    answer: "404 LOG_DRAIN_NOT_FOUND",
    call: (all) => all.slipway.DELETE("/v1/organization/log-drains/{drainId}", drain),
  },
  readUsage: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/organization/usage") },
  listInvoices: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/organization/invoices") },
  readInvoice: {
    answer: "404 INVOICE_NOT_FOUND",
    call: ({ slipway }) => slipway.GET("/v1/organization/invoices/{invoiceId}", invoice),
  },
  listInvoiceCharges: {
    answer: "404 INVOICE_NOT_FOUND",
    call: ({ slipway }) => slipway.GET("/v1/organization/invoices/{invoiceId}/charges", invoice),
  },
  updateBudget: {
    answer: "200",
    call: ({ slipway }) =>
      slipway.PUT("/v1/organization/budget", { body: { amount: "15000", hard_cap: false } }),
  },
  readBudget: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/organization/budget") },
  deleteBudget: { answer: "200", call: ({ slipway }) => slipway.DELETE("/v1/organization/budget") },
  receiveStripePayment: {
    answer: "401 PAYMENT_WEBHOOK_UNSIGNED",
    call: ({ slipway }) =>
      slipway.POST("/v1/payment-webhooks/stripe", {
        body: {
          id: "evt_1",
          livemode: true,
          type: "payment_intent.succeeded",
          created: 1795694400,
          data: { object: {} },
        },
      }),
  },
  receiveGenericPayment: {
    answer: "401 PAYMENT_WEBHOOK_UNSIGNED",
    call: ({ slipway }) =>
      slipway.POST("/v1/payment-webhooks/generic", {
        body: {
          type: "payment.received",
          timestamp: "2026-11-21T12:00:00Z",
          data: { invoice: absent.invoice, reference: "bank-1", currency: "BRL", amount: "2223" },
        },
      }),
  },
  readOpenApi: { answer: "200", call: ({ slipway }) => slipway.GET("/v1/openapi.json") },
} as const satisfies Partial<Record<OperationId, Operation>>;
